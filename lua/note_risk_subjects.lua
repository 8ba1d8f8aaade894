--[[
note_risk_subjects: bring who is listed or scored to a template's gate, each only in the place of an older word.

KEYS
  1 risk list  hash  see the part weigh_risk; "brought": the newest version that all before are there with

ARGV, pairs of field and value; the value's last word is its version, rising with each change

Returns NOTED.
]]
for i = 1, #ARGV, 2 do
  local stored = redis.call('HGET', KEYS[1], ARGV[i])
  local known = stored and tonumber(string.match(stored, '(%d+)$')) or -1
  if tonumber(string.match(ARGV[i + 1], '(%d+)$')) > known then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  end
end
return 'NOTED'
