--[[
acknowledge_claims: take settled claims off the pending stream and write down how they ended, in one step.

Only the call that removes an entry acts for it (the fence): a second acknowledgement of the same entry changes
nothing, so that stock and allowance of a rejected claim come back exactly once.

KEYS
  1 stock       integer units left
  2 takers      hash    user -> "<count> <last seq>"
  3 requests    hash    "<user> <request id>" -> "<claim id> <state>"
  4 claims      hash    claim id -> accepted at (ms)
  5 pending     stream  see claim.lua
  6 day prefix  prefix of hash  user -> count of one local day

ARGV, five for each entry
  entry_id  id in the pending stream
  claim_id  digits
  request   "<user> <request id>"
  day       number of the local day in which it was accepted, or ""
  state     "issued", or the reason of the rejection

Returns the number of entries this call acknowledged.
]]
local acknowledged = 0
for i = 1, #ARGV, 5 do
  local entry_id, claim_id, request, day, state = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
  if redis.call('XDEL', KEYS[5], entry_id) == 1 then
    acknowledged = acknowledged + 1
    redis.call('HDEL', KEYS[4], claim_id)
    redis.call('HSET', KEYS[3], request, claim_id .. ' ' .. state)
    if state ~= 'issued' then
      local user = string.sub(request, 1, string.find(request, ' ', 1, true) - 1)
      redis.call('INCR', KEYS[1])
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
end
return acknowledged
