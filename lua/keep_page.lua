--[[
keep_page: keep a page for what is left of its reader's token's life and more_ms, unless what it shows has changed since.

KEYS
  1 page  string  the page, or the token of whoever is filling it

ARGV
  1 token    what the reader put there before he read
  2 page     bytes to keep; "" when the reader has failed: another may try at once
  3 more_ms  milliseconds by which the page outlives the token

Returns KEPT, LEFT when there was no page to keep, or CHANGED when the token is gone.
]]
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 'CHANGED'
end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
  return 'LEFT'
end
local left_ms = math.max(1, redis.call('PTTL', KEYS[1]))
redis.call('SET', KEYS[1], ARGV[2], 'PX', left_ms + ARGV[3])
return 'KEPT'
