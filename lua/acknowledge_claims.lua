--[[
acknowledge_claims: take settled claims off the pending stream and write down how they ended, in one step.

The batch is the head of the stream, so it is cut off as a whole; what claims were issued may be written down twice.
A rejected claim is removed by itself first, and only the call that removes it (the fence) gives stock and allowance
back: exactly once, however often the same batch is acknowledged. Where older entries stand before the batch, Redis
was rewound since it was read: nothing is cut off then, and all of it comes again.

KEYS
  1 stock       integer units left
  2 takers      hash    user -> "<count> <last seq>"
  3 requests    hash    "<user> <request id>" -> "<claim id> <state>"
  4 claims      hash    claim id -> accepted at (ms)
  5 pending     stream  see claim.lua
  6 day prefix  prefix of hash  user -> count of one local day

ARGV
  1 first      id in the pending stream of the batch's first entry
  2 keep_from  id in the pending stream: every entry from the first to before this has been settled or set aside
  3 issued     number of issued claims; two values follow for each:
      claim_id  digits
      request   "<user> <request id>"
  then five values for each rejected claim:
      entry_id  id in the pending stream
      claim_id  digits
      request   "<user> <request id>"
      day       number of the local day in which it was accepted, or ""
      answer    "<claim id> <state>" that answers its request from now on: its own, or for a duplicate the first claim's

Returns the number of rejected claims this call gave back.
]]
local issued = tonumber(ARGV[3])
local rest = 4 + 2 * issued

-- In chunks that fit Lua's stack.
for from = 4, rest - 1, 1000 do
  local ids, states = {}, {}
  for i = from, math.min(from + 999, rest - 1), 2 do
    ids[#ids + 1] = ARGV[i]
    states[#states + 1] = ARGV[i + 1]
    states[#states + 1] = ARGV[i] .. ' issued'
  end
  redis.call('HDEL', KEYS[4], unpack(ids))
  redis.call('HSET', KEYS[3], unpack(states))
end

local given_back = 0
for i = rest, #ARGV, 5 do
  local entry_id, claim_id, request, day, answer = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
  redis.call('HDEL', KEYS[4], claim_id)
  if redis.call('XDEL', KEYS[5], entry_id) == 1 then
    given_back = given_back + 1
    redis.call('INCR', KEYS[1])
    redis.call('HSET', KEYS[3], request, answer)
    local user = string.sub(request, 1, string.find(request, ' ', 1, true) - 1)
    local taker = redis.call('HGET', KEYS[2], user)
    if taker then
      local space = string.find(taker, ' ', 1, true)
      local count = math.max(0, tonumber(string.sub(taker, 1, space - 1)) - 1)
      redis.call('HSET', KEYS[2], user, count .. string.sub(taker, space))
    end
    if day ~= '' and redis.call('HINCRBY', KEYS[6] .. day, user, -1) <= 0 then
      redis.call('HDEL', KEYS[6] .. day, user)
    end
  end
end

if #redis.call('XRANGE', KEYS[5], '-', '(' .. ARGV[1], 'COUNT', 1) == 0 then
  redis.call('XTRIM', KEYS[5], 'MINID', ARGV[2])
end
return given_back
