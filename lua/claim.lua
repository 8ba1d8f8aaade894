--[[
claim: decide one claim, and when it is accepted take the unit, count the user and queue the claim, in one step.

A refusal writes nothing of the template; an attempt that passes the rate check is counted by it.

A template with a risk policy has it asked last, by the part weigh_risk: what it refuses takes nothing, but counts for
the rule, and is noted in a log of bounded length, or in the number of those it had no room for. What it holds for
review is accepted like any other claim; its entry says which rules fired, and the settling holds it.

A template of random amounts has a pool of face values, and an accepted claim draws one: the next of a list that is
shuffled. What the list still holds although a claim that was queued when it was made has it is passed over. A claim
that finds the list empty is accepted without: the settling draws for it.

KEYS
  1 meta         hash    version, status, start_ms, end_ms, user_limit, daily_limit, offsets, channels, epoch,
                         pool: "1" or "", "held:<amount>": how many of the amount to pass over in the pool,
                         risk: the policy in the words of the part weigh_risk, or ""
  2 generation   string  set last by the preheat
  3 stock        integer units left
  4 takers       hash    user -> "<count> <last seq>"
  5 requests     hash    "<user> <request id>" -> "<claim id> <state>"
  6 claims       hash    claim id -> accepted at (ms)
  7 pending      stream  c claim id, u user, r request id, s seq, t accepted at (ms), d local day, e epoch, h channel,
                         v face value drawn ("" for none) where the template has a pool; where rules fired
                         k what fired, and i, p, a what the claim named
  8 bell         string  set while a doorbell is out
  9 day prefix   prefix of hash  user -> count of one local day; the key ends in the day's number since 1970-01-01
 10 rate prefix  prefix of string  the key ends in the user; value: instant (us) up to which his rate is used up
 11 pool         list    face values (minor units) nobody has drawn, of a template of random amounts; drawn at its end
 12 risk list    hash    who is listed or scored; see the part weigh_risk
 13 risk prefix  prefix of hash or sorted set  counters of rules, see there; "dropped": refusals that were not noted
 14 risk log     stream  refusals: t at (ms), c claim id, u user, k what fired, i device, p ip, a address

ARGV
  1 claim_id       digits
  2 user_id        text without spaces
  3 request_id     text without spaces
  4 now_ms         milliseconds since 1970; 0: Redis's own clock
  5 channel        text, or "" when the caller names none
  6 backlog_limit  entries the pending stream may hold
  7 rate           attempts per second and user; 0: no limit
  8 bell_ttl_ms    milliseconds after which a forgotten bell may be rung again
  9 device_id      text, or "" when the caller names none; here and below. A claim that names none may end before
 10 ip             an address, or its network
 11 address_hash   text

Returns one of
  {REPLAYED, claim id, state}        the same request was accepted before; state: queued, issued or a reason
  {NOT_WARMED}
  {RATE_LIMITED, wait_ms}
  {ENDED}
  {NOT_STARTED, start_ms}
  {PAUSED}
  {NOT_ELIGIBLE}                     the template is not for this channel
  {LIMIT_REACHED}
  {DAILY_LIMIT_REACHED}
  {SOLD_OUT}
  {BACKLOG_FULL}
  {RISK_REJECTED, rule}
  {ACCEPTED, now_ms, ring}           ring: 1 when the caller must send the doorbell
]]
-- part: redis_clock
-- part: rate_limit
local MOST_NOTED = 10000  -- refusals in the log of a template: some megabytes, and emptied every few seconds

local claim_id, user_id, request_id = ARGV[1], ARGV[2], ARGV[3]
local request = user_id .. ' ' .. request_id

local stored = redis.call('HGET', KEYS[5], request)
if stored then
  local space = string.find(stored, ' ', 1, true)
  return { 'REPLAYED', string.sub(stored, 1, space - 1), string.sub(stored, space + 1) }
end

-- A call costs more than what it reads: those of single values are one.
local rate_key = KEYS[10] .. user_id
local generation, stock, bell, used_up_to = unpack(redis.call('MGET', KEYS[2], KEYS[3], KEYS[8], rate_key))
if not generation then
  return { 'NOT_WARMED' }
end

local now_ms = redis_clock(tonumber(ARGV[4]))
local wait_ms = over_rate(tonumber(ARGV[7]), rate_key, used_up_to, now_ms)
if wait_ms then
  return { 'RATE_LIMITED', wait_ms }
end

local meta = redis.call('HMGET', KEYS[1], 'status', 'start_ms', 'end_ms', 'user_limit', 'daily_limit', 'channels', 'epoch',
  'pool', 'risk')
local status = meta[1]
if now_ms >= tonumber(meta[3]) or status == 'offline' then
  return { 'ENDED' }
end
if now_ms < tonumber(meta[2]) then
  return { 'NOT_STARTED', tonumber(meta[2]) }
end
if status ~= 'open' then
  return { 'PAUSED' }
end

local channel, channels = ARGV[5], meta[6]
if channel ~= '' and channels ~= '' then
  -- With a comma in it "app,web" would be found in a list of both.
  if string.find(channel, ',', 1, true) or not string.find(channels, ',' .. channel .. ',', 1, true) then
    return { 'NOT_ELIGIBLE' }
  end
end

local count, seq = 0, 0
local taker = redis.call('HGET', KEYS[4], user_id)
if taker then
  local space = string.find(taker, ' ', 1, true)
  count, seq = tonumber(string.sub(taker, 1, space - 1)), tonumber(string.sub(taker, space + 1))
end
local user_limit = meta[4]
if user_limit ~= '' and count >= tonumber(user_limit) then
  return { 'LIMIT_REACHED' }
end

local day, day_key = '', nil
local daily_limit = meta[5]
if daily_limit ~= '' then
  day = local_day(redis.call('HGET', KEYS[1], 'offsets'), now_ms)
  day_key = KEYS[9] .. day
  if tonumber(redis.call('HGET', day_key, user_id) or 0) >= tonumber(daily_limit) then
    return { 'DAILY_LIMIT_REACHED' }
  end
end

if tonumber(stock) <= 0 then
  return { 'SOLD_OUT' }
end
if redis.call('XLEN', KEYS[7]) >= tonumber(ARGV[6]) then
  return { 'BACKLOG_FULL' }
end

local now = string.format('%d', now_ms)
local value
if meta[8] == '1' then
  local held
  repeat
    value = redis.call('RPOP', KEYS[11])
    held = value and redis.call('HGET', KEYS[1], 'held:' .. value)
    if held and redis.call('HINCRBY', KEYS[1], 'held:' .. value, -1) == 0 then
      redis.call('HDEL', KEYS[1], 'held:' .. value)
    end
  until not held
end

local fired = ''
local device, ip, address = ARGV[9] or '', ARGV[10] or '', ARGV[11] or ''
if meta[9] and meta[9] ~= '' then
  -- Here, not above: a template without a policy does not pay for the part's functions, which each run makes anew.
  -- part: weigh_risk
  local claim = { user = user_id, device = device, ip = ip, address = address, worth = tonumber(value or nil) }
  local verdict, rule
  verdict, rule, fired = weigh_risk(meta[9], claim, now_ms, KEYS[12], KEYS[13])
  if verdict == 'reject' then
    if value then
      redis.call('RPUSH', KEYS[11], value)
    end
    if redis.call('XLEN', KEYS[14]) < MOST_NOTED then
      redis.call('XADD', KEYS[14], '*', 't', now, 'c', claim_id, 'u', user_id, 'k', fired, 'i', device, 'p', ip,
        'a', address)
    else
      redis.call('INCR', KEYS[13] .. 'dropped')
    end
    return { 'RISK_REJECTED', rule }
  end
end

seq = seq + 1
redis.call('DECR', KEYS[3])
redis.call('HSET', KEYS[4], user_id, (count + 1) .. ' ' .. seq)
redis.call('HSET', KEYS[5], request, claim_id .. ' queued')
redis.call('HSET', KEYS[6], claim_id, now)
if day_key and redis.call('HINCRBY', day_key, user_id, 1) == 1 and redis.call('TTL', day_key) < 0 then
  -- Set once: a local day is over at most 26 hours after it begins in UTC terms, and a late rejection still finds it.
  redis.call('EXPIRE', day_key, 172800)
end
local entry = { KEYS[7], '*', 'c', claim_id, 'u', user_id, 'r', request_id, 's', seq, 't', now, 'd', day, 'e', meta[7],
  'h', channel }
if meta[8] == '1' then
  entry[19], entry[20] = 'v', value or ''
end
if fired ~= '' then
  for _, part in ipairs({ 'k', fired, 'i', device, 'p', ip, 'a', address }) do
    entry[#entry + 1] = part
  end
end
redis.call('XADD', unpack(entry))
if not bell then
  redis.call('SET', KEYS[8], '1', 'PX', ARGV[8])
end
return { 'ACCEPTED', now, bell and 0 or 1 }
