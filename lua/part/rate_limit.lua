--[[
rate_limit: attempts per second of one user, a value each.

``over_rate(rate, rate_key, used_up_to, now_ms)`` counts an attempt, and returns nothing; or the milliseconds to wait when
it is one too many, and writes nothing. ``used_up_to`` is what the key holds. No limit holds where ``rate`` is 0.
]]
local function over_rate(rate, rate_key, used_up_to, now_ms)
  if rate <= 0 then
    return nil
  end
  -- The rate is kept as the instant up to which it is used up (GCRA): one value, and a refusal writes nothing. Whole
  -- microseconds: with fractions of milliseconds the last attempt of a second was lost to rounding.
  local now_us = now_ms * 1000
  used_up_to = math.max(tonumber(used_up_to or 0), now_us) + math.floor(1000000 / rate)
  if used_up_to - now_us > 1000000 then
    return math.ceil((used_up_to - now_us) / 1000) - 1000
  end
  redis.call('SET', rate_key, string.format('%d', used_up_to), 'PX', math.ceil((used_up_to - now_us) / 1000))
  return nil
end
