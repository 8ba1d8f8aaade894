--[[
swap_keys: what the scripts that put the keys of a preheat in the place of the live ones have in common.

``is_overtaken(meta, generation, told, version)``: the live keys, or who was told while there were none, know a newer
version than the build. ``fields_of(entry)``: the fields of an entry of a stream by name. ``is_number(text)``: digits
that the database has room for. ``replace(live, shadow)`` and ``replace_days(live prefix, shadow prefix, days, ttl_s)``
rename; a shadow that is not there stands for an empty one.
]]
local function is_overtaken(meta, generation, told, version)
  local known = redis.call('HGET', meta, 'version')
  if known and redis.call('EXISTS', generation) == 1 and tonumber(known) > tonumber(version) then
    return true
  end
  return tonumber(redis.call('GET', told) or 0) > tonumber(version)
end

local function fields_of(entry)
  local field = {}
  for i = 1, #entry[2], 2 do
    field[entry[2][i]] = entry[2][i + 1]
  end
  return field
end

local function is_number(text)
  return text and #text <= 19 and string.match(text, '^%d+$')
end

local function replace(live, shadow)
  redis.call('UNLINK', live)
  if redis.call('EXISTS', shadow) == 1 then
    redis.call('RENAME', shadow, live)
    redis.call('PERSIST', live)
  end
end

local function replace_days(live_prefix, shadow_prefix, days, ttl_s)
  for day in string.gmatch(days, '%d+') do
    replace(live_prefix .. day, shadow_prefix .. day)
    redis.call('EXPIRE', live_prefix .. day, ttl_s)
  end
end
