--[[
weigh_risk: what a risk policy says of a claim; a part of scripts that name it in a line of their own.

The scripts hand in their keys: list, a hash of who is listed ("<dimension> <value>" -> "block|allow|none <until ms>
<version>") and of scores ("score <user>" -> "<score> <until ms> <version>"; until 0: for good), and the prefix of
counters. All rules of one window count in one hash for each such window of time, "<rule> <dimension> <measure>
<subject>" -> count, of which the window before counts by the share of it that is still in sight: one write a window, as
each goes into the append-only file. A counter of users is a sorted set of the latest of them, one more than the
threshold. What a refusal counts has a counter already: strangers without end make none.
]]
local function users_with(key, user, window_ms, most, now_ms)
  local others = redis.call('ZCARD', key)
  if others < most then
    return others + 1  -- so few do not fire, whoever and however old they are
  end
  redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now_ms - window_ms))
  others = redis.call('ZCARD', key)
  return redis.call('ZSCORE', key, user) and others or others + 1
end

-- Writes down what claims that were let through, or of one rule a refused one, have used.
local function count_risk(counters, user, now_ms)
  local windows = {}
  for _, counter in ipairs(counters) do
    local window_ms = counter[2]
    if counter[3] then
      redis.call('ZADD', counter[1], string.format('%.0f', now_ms), user)
      if counter[3] > counter[4] + 1 then
        redis.call('ZPOPMIN', counter[1])
      end
      if redis.call('PTTL', counter[1]) < window_ms then
        redis.call('PEXPIRE', counter[1], 2 * window_ms)
      end
    else
      local window = windows[window_ms] or { counter[6] }
      windows[window_ms] = window
      window[#window + 1] = counter[1]
      window[#window + 1] = string.format('%.0f', counter[5])
    end
  end
  for window_ms, window in pairs(windows) do
    redis.call('HSET', unpack(window))
    if redis.call('PTTL', window[1]) < 0 then
      redis.call('PEXPIRE', window[1], string.format('%.0f', 2 * window_ms - now_ms % window_ms))
    end
  end
end

local function listed_as(entry, now_ms)
  if not entry then
    return
  end
  local word, until_ms = string.match(entry, '^(%w+) (%d+) ')
  if word and (until_ms == '0' or now_ms < tonumber(until_ms)) then
    return word
  end
end

-- The rules of a policy that have something to ask of the claim, and what their counters hold, by window: key, and
-- counts of the window now and of the one before.
local function risk_rules(policy, claim, now_ms, counter_prefix)
  local rules, windows = {}, {}
  for name, dimension, measure, window_ms, most, verdict, shadow in
    string.gmatch(policy, '(%S+) (%S+) (%S+) (%d+) (%d+) (%a+) (%d)\n') do
    local subject = claim[dimension]
    if subject ~= '' then
      local rule = { name, measure, tonumber(window_ms), tonumber(most), verdict, shadow == '1' }
      rule[7] = name .. ' ' .. dimension .. ' ' .. measure .. ' ' .. subject
      if measure == 'claims' or measure == 'face_value_minor' then
        local fields = windows[window_ms] or {}
        windows[window_ms] = fields
        fields[#fields + 1] = rule[7]
        rule[8], rule[9] = fields, #fields
      end
      rules[#rules + 1] = rule
    end
  end
  for window_ms, fields in pairs(windows) do
    local number = math.floor(now_ms / window_ms)
    fields.key = counter_prefix .. window_ms .. ' ' .. string.format('%.0f', number)
    fields.now = redis.call('HMGET', fields.key, unpack(fields))
    fields.before = redis.call('HMGET', counter_prefix .. window_ms .. ' ' .. string.format('%.0f', number - 1),
      unpack(fields))
  end
  return rules
end

-- claim: user, device, ip, address ("" where it names none), worth (minor units, or nil: as the policy says).
-- Returns the verdict, its rule, all that fired ("<verdict> <rule>", "~" before it in shadow, by commas), and counters:
-- {field, window (ms), false, nil, count, key}, or of users {key, window (ms), users, most}.
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
  local verdict, by, fired, counters = 'allow', '', '', {}
  for _, rule in ipairs(risk_rules(string.sub(policy, at), claim, now_ms, counter_prefix)) do
    local name, measure, window_ms, most, said = rule[1], rule[2], rule[3], rule[4], rule[5]
    local fires, counter
    if measure == 'score' then
      local score = listed_as(listed[5], now_ms)
      fires = score and tonumber(score) > most
      if not score and missing_score ~= 'allow' then
        name, said, fires = 'missing_score', missing_score, true
      end
    elseif measure == 'distinct_users' then
      local key = counter_prefix .. rule[7]
      local users = users_with(key, claim.user, window_ms, most, now_ms)
      counter = { key, window_ms, users, most }
      fires = users > most
    else
      local window, place = rule[8], rule[9]
      local count = tonumber(window.now[place] or 0) + (measure == 'claims' and 1 or worth)
      local in_sight = math.floor(tonumber(window.before[place] or 0) * (window_ms - now_ms % window_ms) / window_ms)
      counter = { rule[7], window_ms, false, nil, count, window.key }
      fires = count + in_sight > most
    end
    counters[#counters + 1] = counter
    if fires then
      fired = fired .. (fired == '' and '' or ',') .. (rule[6] and '~' or '') .. said .. ' ' .. name
      if said == 'reject' and not rule[6] then
        local counts = count_refused == '1' and measure == 'claims' and most > 0
        return 'reject', name, fired, counts and { counter } or {}
      end
      if said == 'review' and not rule[6] and verdict == 'allow' then
        verdict, by = 'review', name
      end
    end
  end
  return verdict, by, fired, counters
end
