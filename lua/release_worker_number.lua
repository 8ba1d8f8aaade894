--[[
release_worker_number: give a worker number back at once, with the last instant its identities bear.

KEYS
  1 worker numbers  hash  number -> "<token> <lease_until_ms> <ceiling_ms>"

ARGV
  1 token          text without spaces: who held it
  2 number         the number held
  3 high_water_ms  milliseconds since 1970 of the holder's newest identity: the next holder begins above it

Returns one of
  {RELEASED}  the number may be taken
  {NOT_HELD}  another holds it, or nobody: nothing was changed
]]
local record = redis.call('HGET', KEYS[1], ARGV[2])
if not record or string.match(record, '^%S+') ~= ARGV[1] then
  return { 'NOT_HELD' }
end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[1] .. ' 0 ' .. ARGV[3])
return { 'RELEASED' }
