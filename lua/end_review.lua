--[[
end_review: tell the gate how the review of a held claim ended, once.

The state "held" of its request is the fence: whoever finds it writes the end in its place, and gives back what a
rejected claim had taken. A gate that was rebuilt since has the end from the database.

KEYS
  1 stock       integer units left
  2 takers      hash    user -> "<count> <last seq>"
  3 requests    hash    "<user> <request id>" -> "<claim id> <state>"
  4 day prefix  prefix of hash  user -> count of one local day
  5 pool        list    face values nobody has drawn; see claim.lua
  6 meta        hash    see claim.lua

ARGV
  1 claim_id   digits
  2 request    "<user> <request id>"
  3 answer     "<claim id> <state>" that answers its request from now on
  4 give_back  1: it was rejected
  5 day        number of the local day in which it was accepted, or ""
  6 value      face value it drew from the pool and gives back, or ""
  7 redrawn    face value the database has drawn for it, which the pool passes over, or ""

Returns TOLD, or ABSENT where nothing is held.
]]
if redis.call('HGET', KEYS[3], ARGV[2]) ~= ARGV[1] .. ' held' then
  return 'ABSENT'
end
redis.call('HSET', KEYS[3], ARGV[2], ARGV[3])
if ARGV[7] ~= '' then
  redis.call('HINCRBY', KEYS[6], 'held:' .. ARGV[7], 1)
end
if ARGV[4] == '1' then
  redis.call('INCR', KEYS[1])
  if ARGV[6] ~= '' then
    redis.call('LPUSH', KEYS[5], ARGV[6])
  end
  local user = string.sub(ARGV[2], 1, string.find(ARGV[2], ' ', 1, true) - 1)
  local taker = redis.call('HGET', KEYS[2], user)
  if taker then
    local space = string.find(taker, ' ', 1, true)
    local count = math.max(0, tonumber(string.sub(taker, 1, space - 1)) - 1)
    redis.call('HSET', KEYS[2], user, count .. string.sub(taker, space))
  end
  local day_key = KEYS[4] .. ARGV[5]
  if ARGV[5] ~= '' and redis.call('EXISTS', day_key) == 1 and redis.call('HINCRBY', day_key, user, -1) <= 0 then
    redis.call('HDEL', day_key, user)
  end
end
return 'TOLD'
