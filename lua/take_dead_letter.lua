--[[
take_dead_letter: take one message out of the dead letters, either back to its queue or for good, once.

Both ends of the move are in one step, and the content is compared: of two callers one moves it, and neither can put
back a message that has died again in the meantime with another content.

KEYS
  1 dead       zset  id -> given up at (ms)
  2 dead msgs  hash  id -> content
  3 queue      list  ids of waiting messages
  4 messages   hash  id -> content

ARGV
  1 id        the message's id in these keys
  2 expected  its content as it was read
  3 content   what goes back to the queue; "" to discard it

Returns TAKEN when this call took it, GONE when it is not there (any more) with that content.
]]
if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then
  return 'GONE'
end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[4], ARGV[1], ARGV[3])
  redis.call('RPUSH', KEYS[3], ARGV[1])
end
return 'TAKEN'
