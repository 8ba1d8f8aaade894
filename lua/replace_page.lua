--[[
replace_page: take the turn at filling a page that is there and may no longer be shown.

KEYS
  1 page  string  the page, or the token of whoever is filling it

ARGV
  1 head     how the page begins that may not be shown: of no other page
  2 token    what is put in its place
  3 keep_ms  life of the token in milliseconds

Returns TAKEN, or CHANGED when that page is not there any more.
]]
if redis.call('GETRANGE', KEYS[1], 0, #ARGV[1] - 1) ~= ARGV[1] then
  return 'CHANGED'
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 'TAKEN'
