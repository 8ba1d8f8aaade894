--[[
weigh_risk: what a risk policy says of a claim; a part of scripts that name it in a line of their own.

The scripts hand in their keys: list, a hash of who is listed ("<dimension> <value>" -> "block|allow|none <until ms>
<version>") and of scores ("score <user>" -> "<score> <until ms> <version>"; until 0: for good), and the prefix of
counters. The counters of all rules are fields of one hash, so that a claim reads and writes them at one go: "<rule>
<dimension> <measure> <subject>" -> "<window> <count> <count of the window before>", of which the latter counts by the
share of it that is still in sight. The hash begins anew every two longest windows of the policy, and until the next
does, the one before is looked at too, unless there was none ("first" -> 1); then it goes as a whole. A counter of users
is a sorted set of the latest of them, one more than the threshold. What a refusal counts has a counter already:
strangers without end make none.
]]
local LONGEST_MS = 2592000000  -- a window may have; stands for those of a policy that says no life of its counters

local function users_with(key, user, window_ms, most, now_ms)
  local others = redis.call('ZCARD', key)
  if others < most then
    return others + 1  -- so few do not fire, whoever and however old they are
  end
  redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%d', now_ms - window_ms))
  others = redis.call('ZCARD', key)
  return redis.call('ZSCORE', key, user) and others or others + 1
end

local function count_user(key, user, window_ms, users, most, now_ms)
  redis.call('ZADD', key, string.format('%d', now_ms), user)
  if users > most + 1 then
    redis.call('ZPOPMIN', key)
  end
  if users == 1 or redis.call('PTTL', key) < window_ms then
    redis.call('PEXPIRE', key, 2 * window_ms)
  end
end

local function word_of(entry, now_ms)
  local word, until_ms = string.match(entry, '^(%w+) (%d+) ')
  if word and (until_ms == '0' or now_ms < tonumber(until_ms)) then
    return word
  end
end

-- What the lists say, 'block' before 'allow', and the user's score; nil for nothing.
local function look_up(list_key, claim, now_ms)
  local found = redis.call('HMGET', list_key, 'user ' .. claim.user, 'device ' .. claim.device, 'ip ' .. claim.ip,
    'address ' .. claim.address, 'score ' .. claim.user)
  local listed
  for i = 1, 4 do
    local word = found[i] and word_of(found[i], now_ms)
    if word == 'block' or word == 'allow' and not listed then
      listed = word
    end
  end
  return listed, found[5] and tonumber(word_of(found[5], now_ms) or nil)
end

-- The rules of a policy that have something to ask of the claim, and the fields of those that count in the hash.
local function rules_for(policy, claim)
  local rules, fields = {}, {}
  for prefix, name, dimension, measure, window_ms, most, said in
    string.gmatch(policy, '((%S+) (%S+) (%S+) )(%d+) (%d+) (%a+ %d)\n') do
    local subject = claim[dimension]
    if subject ~= '' then
      local field = prefix .. subject
      rules[#rules + 1] = { field, name, measure, tonumber(window_ms), tonumber(most), said }
      if measure == 'claims' or measure == 'face_value_minor' then
        fields[#fields + 1] = field
      end
    end
  end
  return rules, fields
end

-- What the fields hold, in their order; with the hash's key and, when it is a new one, its life and what to note.
local function read_counters(fields, prefix, life_ms, now_ms)
  local number = math.floor(now_ms / life_ms)
  local key = prefix .. string.format('%d', number)
  local held = redis.call('HMGET', key, 'first', unpack(fields))
  local first = table.remove(held, 1)
  if first ~= '1' then
    local earlier = redis.call('HMGET', prefix .. string.format('%d', number - 1), 'first', unpack(fields))
    for i = 1, #fields do
      held[i] = held[i] or earlier[i + 1]
    end
    held.first = not first and (earlier[1] and '0' or '1')
  end
  held.key, held.ttl_ms = key, (number + 2) * life_ms - now_ms
  return held
end

-- counts: pairs of field and value.
local function write_counters(held, counts)
  if held.first then
    counts[#counts + 1], counts[#counts + 2] = 'first', held.first
  end
  redis.call('HSET', held.key, unpack(counts))
  if held.first then
    redis.call('PEXPIRE', held.key, string.format('%d', held.ttl_ms))
  end
end

-- The count with the claim at hand, as it is kept and as the rule sees it.
local function count_with(kept, adds, window_ms, now_ms)
  local window, count, before = math.floor(now_ms / window_ms), adds, 0
  if kept then
    local of, was, was_before = string.match(kept, '(%d+) (%d+) (%d+)')
    if tonumber(of) == window then
      count, before = adds + was, tonumber(was_before)
    elseif tonumber(of) == window - 1 then
      before = tonumber(was)
    end
  end
  local in_sight = math.floor(before * (window_ms - now_ms % window_ms) / window_ms)
  return string.format('%d %d %d', window, count, before), count + in_sight
end

-- claim: user, device, ip, address ("" where it names none), worth (minor units, or nil: as the policy says).
-- Returns the verdict, its rule, and all that fired ("<verdict> <rule>", "~" before it in shadow, by commas). Claims
-- that are let through are counted, and refused ones for the rule of claims that refused them.
local function weigh_risk(policy, claim, now_ms, list_key, counter_prefix)
  local listed, score = look_up(list_key, claim, now_ms)
  if listed then
    local said, rule = listed == 'block' and 'reject' or 'allow', listed .. '_list'
    return said, rule, said .. ' ' .. rule
  end

  local count_refused, missing_score, worth, life_ms = string.match(policy, '^(%d) (%a+) (%d+) ?(%d*)\n')
  local rules, fields = rules_for(policy, claim)
  local held = fields[1] and read_counters(fields, counter_prefix, tonumber(life_ms) or 2 * LONGEST_MS, now_ms)
  local verdict, by, fired, place, counts, users = 'allow', '', '', 0, {}, {}
  for i = 1, #rules do
    local field, name, measure, window_ms, most, said = unpack(rules[i])
    local fires
    if measure == 'score' then
      fires = score and score > most
      if not score and missing_score ~= 'allow' then
        name, said, fires = 'missing_score', missing_score .. string.sub(said, -2), true
      end
    elseif measure == 'distinct_users' then
      local count = users_with(counter_prefix .. field, claim.user, window_ms, most, now_ms)
      users[#users + 1] = { counter_prefix .. field, claim.user, window_ms, count, most, now_ms }
      fires = count > most
    else
      place = place + 1
      local adds = measure == 'claims' and 1 or claim.worth or tonumber(worth)
      local kept, count = count_with(held[place], adds, window_ms, now_ms)
      counts[2 * place - 1], counts[2 * place] = field, kept
      fires = count > most
    end
    if fires then
      local word, in_shadow = string.sub(said, 1, -3), string.sub(said, -1) == '1'
      fired = fired .. (fired == '' and '' or ',') .. (in_shadow and '~' or '') .. word .. ' ' .. name
      if word == 'reject' and not in_shadow then
        if measure == 'claims' and count_refused == '1' and most > 0 then
          write_counters(held, { counts[2 * place - 1], counts[2 * place] })
        end
        return word, name, fired
      end
      if word == 'review' and not in_shadow and verdict == 'allow' then
        verdict, by = word, name
      end
    end
  end
  if place > 0 then
    write_counters(held, counts)
  end
  for i = 1, #users do
    count_user(unpack(users[i]))
  end
  return verdict, by, fired
end
