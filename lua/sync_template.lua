--[[
sync_template: bring a change of a template to its live keys; each version applies once, an older one never.

Stock is not set but moved by the difference of the totals, so that units taken meanwhile stay taken.

KEYS
  1 meta        hash    see claim.lua; also total: the units the stock was made from
  2 generation  string  set last by the preheat
  3 stock       integer units left
  4 told        string  newest version told while cold; the preheat builds from none that is older

ARGV
  1 version  number of the change, rising
  2 total    units of this bucket: its share of the total without reservations
  3..        pairs of field and value for meta

Returns
  NOT_WARMED  the keys are not whole; the preheat will bring this version, or a newer one
  STALE       this version, or a newer one, is there already
  APPLIED     the change holds from now on
]]
if redis.call('EXISTS', KEYS[2]) == 0 then
  if tonumber(redis.call('GET', KEYS[4]) or 0) < tonumber(ARGV[1]) then
    redis.call('SET', KEYS[4], ARGV[1], 'EX', 86400)
  end
  return 'NOT_WARMED'
end
local known = redis.call('HMGET', KEYS[1], 'version', 'total')
if tonumber(ARGV[1]) <= tonumber(known[1]) then
  return 'STALE'
end
redis.call('INCRBY', KEYS[3], tonumber(ARGV[2]) - tonumber(known[2]))
redis.call('HSET', KEYS[1], 'version', ARGV[1], 'total', ARGV[2])
for i = 3, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
return 'APPLIED'
