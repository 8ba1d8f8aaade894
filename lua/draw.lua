--[[
draw: decide one draw of a lottery, and when it is accepted take what it wins, count the user and queue the draw, in one
step.

A refusal writes nothing of the lottery; an attempt that passes the rate check is counted by it. The number that the
caller has drawn decides the prize, unless the same request was answered before. A prize that is used up falls to none.

KEYS
  1 meta         hash    version, status, start_ms, end_ms, user_limit, daily_limit, offsets (see claim.lua),
                         weights: "<prize no>:<weight>" joined by ","; "prize:<prize no>": "<template id> <name>"
  2 generation   string  set last by the preheat
  3 stock        hash    prize no -> how many are left
  4 takers       hash    user -> draws
  5 requests     hash    "<user> <request id>" -> "<draw id> <prize no> <state>"
  6 pending      stream  c draw id, u user, r request id, p prize no, t drawn at (ms), d local day
  7 bell         string  set while a doorbell is out
  8 day prefix   prefix of hash  user -> draws of one local day; the key ends in the day's number since 1970-01-01
  9 rate prefix  prefix of string  the key ends in the user; value: instant (us) up to which his rate is used up

ARGV
  1 draw_id        digits
  2 user_id        text without spaces
  3 request_id     text
  4 now_ms         milliseconds since 1970; 0: Redis's own clock
  5 number         0 to the sum of the weights less 1, by chance
  6 backlog_limit  entries the pending stream may hold
  7 rate           attempts per second and user; 0: no limit
  8 bell_ttl_ms    milliseconds after which a forgotten bell may be rung again

Returns one of
  {REPLAYED, draw id, prize no, state, prize}  the same request was accepted before; state: queued, settled or a reason
  {NOT_WARMED}
  {RATE_LIMITED, wait_ms}
  {NOT_STARTED, start_ms}              start_ms is 0 when it waits for more than its start
  {ENDED}
  {PAUSED}
  {LIMIT_REACHED}
  {DAILY_LIMIT_REACHED}
  {BACKLOG_FULL}
  {DRAWN, prize no, prize, ring}       prize no: 0 for none; prize: "<template id> <name>" or ""; ring: 1 when the
                                       caller must send the doorbell
]]
-- part: redis_clock
-- part: rate_limit
local draw_id, user_id = ARGV[1], ARGV[2]
local request = user_id .. ' ' .. ARGV[3]

local stored = redis.call('HGET', KEYS[5], request)
if stored then
  local first, prize_no, state = string.match(stored, '^(%d+) (%d+) (.*)$')
  return { 'REPLAYED', first, tonumber(prize_no), state, redis.call('HGET', KEYS[1], 'prize:' .. prize_no) or '' }
end

if redis.call('EXISTS', KEYS[2]) == 0 then
  return { 'NOT_WARMED' }
end

local now_ms = redis_clock(tonumber(ARGV[4]))
local rate_key = KEYS[9] .. user_id
local wait_ms = over_rate(tonumber(ARGV[7]), rate_key, redis.call('GET', rate_key), now_ms)
if wait_ms then
  return { 'RATE_LIMITED', wait_ms }
end

local meta = redis.call('HMGET', KEYS[1], 'status', 'start_ms', 'end_ms', 'user_limit', 'daily_limit', 'weights')
local status, start_ms = meta[1], tonumber(meta[2])
if now_ms >= tonumber(meta[3]) or status == 'ended' then
  return { 'ENDED' }
end
if now_ms < start_ms or status == 'waiting' then
  return { 'NOT_STARTED', now_ms < start_ms and start_ms or 0 }
end
if status ~= 'open' then
  return { 'PAUSED' }
end

local user_limit = meta[4]
if user_limit ~= '' and tonumber(redis.call('HGET', KEYS[4], user_id) or 0) >= tonumber(user_limit) then
  return { 'LIMIT_REACHED' }
end

local day, day_key = '', nil
local daily_limit = meta[5]
if daily_limit ~= '' then
  day = local_day(redis.call('HGET', KEYS[1], 'offsets'), now_ms)
  day_key = KEYS[8] .. day
  if tonumber(redis.call('HGET', day_key, user_id) or 0) >= tonumber(daily_limit) then
    return { 'DAILY_LIMIT_REACHED' }
  end
end

if redis.call('XLEN', KEYS[6]) >= tonumber(ARGV[6]) then
  return { 'BACKLOG_FULL' }
end

local number, won = tonumber(ARGV[5]), '0'
for prize_no, weight in string.gmatch(meta[6], '(%d+):(%d+)') do
  number = number - tonumber(weight)
  if number < 0 then
    won = prize_no
    break
  end
end
local prize = ''
if won ~= '0' then
  if tonumber(redis.call('HGET', KEYS[3], won) or 0) > 0 then
    redis.call('HINCRBY', KEYS[3], won, -1)
    prize = redis.call('HGET', KEYS[1], 'prize:' .. won)
  else
    won = '0'
  end
end

redis.call('HINCRBY', KEYS[4], user_id, 1)
redis.call('HSET', KEYS[5], request, draw_id .. ' ' .. won .. ' queued')
if day_key and redis.call('HINCRBY', day_key, user_id, 1) == 1 and redis.call('TTL', day_key) < 0 then
  -- Set once, as in claim.lua.
  redis.call('EXPIRE', day_key, 172800)
end
redis.call('XADD', KEYS[6], '*', 'c', draw_id, 'u', user_id, 'r', ARGV[3], 'p', won,
  't', string.format('%d', now_ms), 'd', day)
local ring = redis.call('SET', KEYS[7], '1', 'NX', 'PX', ARGV[8])
return { 'DRAWN', tonumber(won), prize, ring and 1 or 0 }
