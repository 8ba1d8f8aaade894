--[[
reserve_pace: tell background work when it may begin, so that work of one lane keeps to a rate while claims come.

The line is kept as the instant up to which it is reserved: whoever asks begins there, and moves it on by what his work
takes at the rate. While few claims come nobody waits, and what was reserved stays so.

KEYS
  1 line           string   instant (us) up to which the lane is reserved; gone once it has passed
  2 this second    integer  claims settled in the running second
  3 second before  integer  likewise, in the one before

ARGV
  1 now_ms    0: the clock of this server
  2 cost_us   what the work takes at the rate
  3 threshold claims a second from which on work is paced

Returns milliseconds until the work may begin; -1 when it is not paced.
]]
local claims = math.max(tonumber(redis.call('GET', KEYS[2]) or 0), tonumber(redis.call('GET', KEYS[3]) or 0))
if claims < tonumber(ARGV[3]) then
  return -1
end
local now = tonumber(ARGV[1]) * 1000
if now == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
local begins = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now)
local reserved = begins + tonumber(ARGV[2])
redis.call('SET', KEYS[1], string.format('%d', reserved), 'PX', math.max(1, math.ceil((reserved - now) / 1000)))
return math.ceil((begins - now) / 1000)
