--[[
charge_guess: charge one try of a code to each of those who make it, or to none.

An allowance is kept as the instant up to which it is used up: each try moves it on by window / most, and a try is
refused that would move it further than a window ahead. Nothing has to be reset, and a refusal writes nothing.

KEYS
  1.. used up until  string  instant (microseconds); gone once it has passed

ARGV
  1 now_ms     0: the clock of this server
  2 window_ms  time in which a used-up allowance is whole again
  3..          tries allowed in a window, for each of the keys

Returns one of
  {CHARGED}
  {LIMITED, wait_ms}  until a try would be heard
]]
local now = tonumber(ARGV[1]) * 1000
if now == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
local window = tonumber(ARGV[2]) * 1000
local charged, wait = {}, 0
for i = 1, #KEYS do
  local used_until = math.max(tonumber(redis.call('GET', KEYS[i]) or 0), now)
  charged[i] = used_until + math.floor(window / tonumber(ARGV[i + 2]))
  wait = math.max(wait, charged[i] - now - window)
end
if wait > 0 then
  return { 'LIMITED', math.ceil(wait / 1000) }
end
for i = 1, #KEYS do
  redis.call('SET', KEYS[i], string.format('%d', charged[i]), 'PX', math.ceil((charged[i] - now) / 1000))
end
return { 'CHARGED' }
