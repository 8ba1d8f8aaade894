--[[
set_message_aside: move a fetched message that cannot be read to the dead letters of its queue.

Its id is not known, only its content: it is looked for among what this worker has fetched, a handful.

KEYS
  1 acks       set   ids of messages this worker has fetched and not acknowledged
  2 messages   hash  id -> content
  3 dead       zset  id -> set aside at (ms)
  4 dead msgs  hash  id -> content

ARGV
  1 content  the bytes that cannot be read

Returns the number of messages moved.
]]
local moved = 0
local time = redis.call('TIME')
for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  if redis.call('HGET', KEYS[2], id) == ARGV[1] then
    redis.call('SREM', KEYS[1], id)
    redis.call('HDEL', KEYS[2], id)
    redis.call('ZADD', KEYS[3], time[1] * 1000 + math.floor(time[2] / 1000), id)
    redis.call('HSET', KEYS[4], id, ARGV[1])
    moved = moved + 1
  end
end
return moved
