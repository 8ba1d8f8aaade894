--[[
lease_worker_number: hold a worker number of identities: renew the one held, or take the next that nobody holds.

The search begins at the number asked for and takes the first that is the caller's own, that nobody ever held, or whose
lease has ended; Redis's own clock decides. A number whose ceiling lies above the horizon is passed over: its last
holder's clock ran ahead of the caller's, who could not bridge the gap.

A ceiling is the instant up to which the holder may date identities. It is stored before it is used, so that the next
holder can begin above whatever was given. While the hash is young, Redis may have just lost its data and a holder not
yet have noticed: whoever takes a number then begins far enough ahead to be above that one too.

KEYS
  1 worker numbers  hash  number -> "<token> <lease_until_ms> <ceiling_ms>"; born -> when the hash was made (ms)

ARGV
  1 token       text without spaces: who asks
  2 number      0 to count - 1: the number held, or where the search begins
  3 count       how many numbers there are
  4 lease_ms    milliseconds for which the number is held
  5 logical_ms  milliseconds since 1970, by the caller's clock: what the caller has reached
  6 span_ms     milliseconds above logical_ms that the new ceiling lies
  7 horizon_ms  milliseconds since 1970: the highest ceiling the caller can begin above
  8 notice_ms   milliseconds within which every holder notices that Redis lost its data

Returns one of
  {RENEWED, number, start_after_ms, ceiling_ms}  the caller's token held the number
  {LEASED, number, start_after_ms, ceiling_ms}   the number is new to the caller, who begins above start_after_ms
  {EXHAUSTED}                                    every number is held
]]
local key, token = KEYS[1], ARGV[1]
local first, count, lease_ms = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local logical_ms, span_ms = tonumber(ARGV[5]), tonumber(ARGV[6])
local horizon_ms, notice_ms = tonumber(ARGV[7]), tonumber(ARGV[8])

local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

local function digits(value)
  return string.format('%d', value)
end

local function hold(word, number, start_after_ms, ceiling_ms)
  redis.call('HSETNX', key, 'born', digits(now_ms))
  redis.call('HSET', key, number, token .. ' ' .. digits(now_ms + lease_ms) .. ' ' .. digits(ceiling_ms))
  return { word, number, digits(start_after_ms), digits(ceiling_ms) }
end

for step = 0, count - 1 do
  local number = (first + step) % count
  local record = redis.call('HGET', key, number)
  local owner, lease_until_ms, ceiling_ms = nil, 0, 0
  if record then
    owner, lease_until_ms, ceiling_ms = string.match(record, '^(%S+) (%d+) (%d+)$')
    lease_until_ms, ceiling_ms = tonumber(lease_until_ms), tonumber(ceiling_ms)
  end
  if owner == token then
    return hold('RENEWED', number, ceiling_ms, math.max(ceiling_ms, logical_ms + span_ms))
  end
  if lease_until_ms <= now_ms and ceiling_ms <= horizon_ms then
    local start_after_ms = ceiling_ms
    local born_ms = tonumber(redis.call('HGET', key, 'born') or now_ms)
    if now_ms - born_ms < notice_ms then
      start_after_ms = math.max(start_after_ms, logical_ms + notice_ms)
    end
    return hold('LEASED', number, start_after_ms, math.max(start_after_ms, logical_ms) + span_ms)
  end
end
return { 'EXHAUSTED' }
