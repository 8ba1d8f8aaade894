--[[
weigh_risk: what a risk policy says of a claim; a part of scripts that name it in a line of their own.

The scripts hand in their keys: list, a hash of who is listed ("<dimension> <value>" -> "block|allow|none <until ms>
<version>") and of scores ("score <user>" -> "<score> <until ms> <version>"; until 0: for good), and the prefix of
counters. A counter is "<window no> <count> <count of the window before>", of which the window before counts by the
share of it that is still in sight; a counter of users is a sorted set of the latest of them, one more than the
threshold. What a refusal counts has a counter already: refusals make no keys.
]]
local function risk_counter(key, window_ms, now_ms)
  local number, current, before = math.floor(now_ms / window_ms), 0, 0
  local left_ms = window_ms - now_ms % window_ms
  local stored = redis.call('GET', key)
  if stored then
    local first, second, third = string.match(stored, '^(%d+) (%d+) (%d+)$')
    first, second, third = tonumber(first), tonumber(second), tonumber(third)
    if first > number then
      number, left_ms = first, window_ms  -- the clock stepped back
    end
    if first == number then
      current, before = second, third
    elseif first == number - 1 then
      before = second
    end
  end
  return { key = key, number = number, current = current, before = before, left_ms = left_ms, window_ms = window_ms }
end

local function users_with(key, user, window_ms, now_ms)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now_ms - window_ms))
  local others = redis.call('ZCARD', key)
  return redis.call('ZSCORE', key, user) and others or others + 1
end

-- Writes down what claims that were let through, or of one rule a refused one, have used.
local function count_risk(counters, user, now_ms)
  local now = string.format('%.0f', now_ms)
  for _, counter in ipairs(counters) do
    if counter.most then
      redis.call('ZADD', counter.key, now, user)
      if counter.users > counter.most + 1 then
        redis.call('ZPOPMIN', counter.key)
      end
      redis.call('PEXPIRE', counter.key, counter.window_ms)
    else
      redis.call('SET', counter.key,
        string.format('%.0f %.0f %.0f', counter.number, counter.current + counter.adds, counter.before), 'PX',
        string.format('%.0f', counter.left_ms + counter.window_ms))
    end
  end
end

local function listed_as(entry, now_ms)
  local word, until_ms = string.match(entry or '', '^(%w+) (%d+) ')
  if word and (until_ms == '0' or now_ms < tonumber(until_ms)) then
    return word
  end
end

-- claim: user, device, ip, address ("" where it names none), worth (minor units, or nil: as the policy says).
-- Returns the verdict, its rule, all that fired ("<verdict> <rule>", "~" before it in shadow, by commas), and counters.
local function weigh_risk(policy, claim, now_ms, list_key, counter_prefix)
  local listed = redis.call('HMGET', list_key, 'user ' .. claim.user, 'device ' .. claim.device, 'ip ' .. claim.ip,
    'address ' .. claim.address, 'score ' .. claim.user)
  local allowed = false
  for i = 1, 4 do
    local word = listed_as(listed[i], now_ms)
    if word == 'block' then
      return 'reject', 'block_list', 'reject block_list', {}
    end
    allowed = allowed or word == 'allow'
  end
  if allowed then
    return 'allow', 'allow_list', 'allow allow_list', {}
  end

  local count_refused, missing_score, worth, at = string.match(policy, '^(%d) (%a+) (%d+)\n()')
  worth = claim.worth or tonumber(worth)
  local verdict, by, fired, counters = 'allow', '', {}, {}
  for name, dimension, measure, window, threshold, rules_verdict, shadow in
    string.gmatch(string.sub(policy, at), '(%S+) (%S+) (%S+) (%d+) (%d+) (%a+) (%d)\n') do
    local subject, fires, counter = claim[dimension], false, nil
    local window_ms, most = tonumber(window), tonumber(threshold)
    if measure == 'score' then
      local score = listed_as(listed[5], now_ms)
      fires = score and tonumber(score) > most
      if not score and missing_score ~= 'allow' then
        name, rules_verdict, fires = 'missing_score', missing_score, true
      end
    elseif subject ~= '' then
      local key = counter_prefix .. name .. ' ' .. dimension .. ' ' .. measure .. ' ' .. subject
      if measure == 'distinct_users' then
        local users = users_with(key, claim.user, window_ms, now_ms)
        counter = { key = key, users = users, most = most, window_ms = window_ms }
        fires = users > most
      else
        counter = risk_counter(key, window_ms, now_ms)
        counter.adds = measure == 'claims' and 1 or worth
        local in_sight = math.floor(counter.before * counter.left_ms / window_ms)
        fires = counter.current + in_sight + counter.adds > most
      end
      counters[#counters + 1] = counter
    end
    if fires then
      fired[#fired + 1] = (shadow == '1' and '~' or '') .. rules_verdict .. ' ' .. name
      if shadow == '0' and rules_verdict == 'reject' then
        return 'reject', name, table.concat(fired, ','), count_refused == '1' and measure == 'claims' and { counter } or {}
      end
      if shadow == '0' and rules_verdict == 'review' and verdict == 'allow' then
        verdict, by = 'review', name
      end
    end
  end
  return verdict, by, table.concat(fired, ','), counters
end
