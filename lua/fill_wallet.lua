--[[
fill_wallet: keep a wallet's page, unless the wallet has changed since the reader began.

KEYS
  1 wallet  string  the page, or the token of whoever is filling it

ARGV
  1 token    what the reader put there before he read
  2 page     bytes to keep
  3 keep_ms  milliseconds to keep them

Returns KEPT, or CHANGED when the token is gone.
]]
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 'CHANGED'
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 'KEPT'
