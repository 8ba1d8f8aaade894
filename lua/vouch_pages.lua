--[[
vouch_pages: say that the kept pages of a shard show what the database held at an instant; or take over saying so.

KEYS
  1 vouched  string  the epoch of the pages that are vouched for, for as long as they are
  2 watch    string  what whoever vouches has left here: another one at each call

ARGV
  1 before    what he left at his last call; "" to take over from one who has stopped
  2 now       what he leaves at this one
  3 epoch     pages of this epoch are vouched for; "" when he has only taken over
  4 until_ms  up to which instant, by the clock of Redis

Returns DONE, BUSY when another one vouches, or LOST when another one has taken over or Redis has lost the last call.
]]
if ARGV[1] == '' then
  if redis.call('EXISTS', KEYS[1]) == 1 then
    return 'BUSY'
  end
elseif redis.call('GET', KEYS[2]) ~= ARGV[1] then
  return 'LOST'
end
redis.call('SET', KEYS[2], ARGV[2])
if ARGV[3] ~= '' then
  redis.call('SET', KEYS[1], ARGV[3], 'PXAT', ARGV[4])
end
return 'DONE'
