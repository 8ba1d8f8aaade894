--[[
redis_clock: the moment a script decides at, and the local day it falls on.

``redis_clock(now_ms)``: milliseconds since 1970; what the caller says, or by Redis's own clock where it says 0.
``local_day(offsets, now_ms)``: the day's number since 1970-01-01 in wall-clock time. ``offsets`` are those of a time
zone, "<from_s>:<offset_s>" in ascending order, joined by commas.
]]
local function redis_clock(now_ms)
  if now_ms ~= 0 then
    return now_ms
  end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function local_day(offsets, now_ms)
  local now_s, offset_s = math.floor(now_ms / 1000), 0
  for from_s, offset in string.gmatch(offsets, '(-?%d+):(-?%d+)') do
    if tonumber(from_s) <= now_s then
      offset_s = tonumber(offset)
    end
  end
  return string.format('%d', math.floor((now_s + offset_s) / 86400))
end
