--[[
retire_bucket: forget the keys of a bucket that nobody claims from any more, unless claims still wait in it.

KEYS
  1 meta        hash    see claim.lua
  2 generation  string  set last by the preheat
  3 stock       integer units left
  4 takers      hash    user -> "<count> <last seq>"
  5 requests    hash    "<user> <request id>" -> "<claim id> <state>"
  6 claims      hash    claim id -> accepted at (ms)
  7 pending     stream  see claim.lua
  8 bell        string  set while a doorbell is out
  9 pool        list    face values nobody has drawn; see claim.lua
 10 risk list   hash    who is listed or scored; see the part weigh_risk
 11 risk log    stream  refusals; see claim.lua

Returns RETIRED, or PENDING when claims wait to be settled.
]]
if redis.call('XLEN', KEYS[7]) > 0 then
  return 'PENDING'
end
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9],
  KEYS[10], KEYS[11])
return 'RETIRED'
