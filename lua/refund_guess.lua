--[[
refund_guess: give back the try that charge_guess charged, since its code was right.

KEYS
  1.. used up until  string  see charge_guess.lua

ARGV
  1 now_ms     0: the clock of this server
  2 window_ms  see charge_guess.lua
  3..          tries allowed in a window, for each of the keys

Returns REFUNDED. What has filled up meanwhile, or was forgotten, is not given back again.
]]
local now = tonumber(ARGV[1]) * 1000
if now == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
for i = 1, #KEYS do
  local stored = redis.call('GET', KEYS[i])
  if stored then
    local used_until = tonumber(stored) - math.floor(tonumber(ARGV[2]) * 1000 / tonumber(ARGV[i + 2]))
    if used_until > now then
      redis.call('SET', KEYS[i], string.format('%d', used_until), 'PX', math.ceil((used_until - now) / 1000))
    else
      redis.call('DEL', KEYS[i])
    end
  end
end
return 'REFUNDED'
