--[[
close_bell: end a drain when nothing is pending, or keep the bell out when something came in meanwhile.

Looking and closing are one step: a claim is either seen here, or finds the bell gone and rings it.

KEYS
  1 pending  stream  see claim.lua
  2 bell     string  set while a doorbell is out

ARGV
  1 bell_ttl_ms  milliseconds the bell stays out when there is more to drain

Returns CLOSED when nothing is pending, MORE otherwise.
]]
if redis.call('XLEN', KEYS[1]) == 0 then
  redis.call('DEL', KEYS[2])
  return 'CLOSED'
end
redis.call('SET', KEYS[2], '1', 'PX', ARGV[1])
return 'MORE'
