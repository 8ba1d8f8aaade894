--[[
sync_lottery: bring a change of a lottery to its live keys; each version applies once, an older one never.

KEYS
  1 meta        hash    see draw.lua
  2 generation  string  set last by the preheat
  3 told        string  newest version told while cold; the preheat builds from none that is older

ARGV
  1 version  number of the change, rising
  2..        pairs of field and value for meta

Returns
  NOT_WARMED  the keys are not whole; the preheat will bring this version, or a newer one
  STALE       this version, or a newer one, is there already
  APPLIED     the change holds from now on
]]
if redis.call('EXISTS', KEYS[2]) == 0 then
  if tonumber(redis.call('GET', KEYS[3]) or 0) < tonumber(ARGV[1]) then
    redis.call('SET', KEYS[3], ARGV[1], 'EX', 86400)
  end
  return 'NOT_WARMED'
end
if tonumber(ARGV[1]) <= tonumber(redis.call('HGET', KEYS[1], 'version')) then
  return 'STALE'
end
redis.call('HSET', KEYS[1], 'version', ARGV[1])
for i = 2, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
return 'APPLIED'
