--[[
acknowledge_draws: take settled draws off the pending stream and write down how they ended, in one step.

An entry goes only while it still holds the draw that was settled: where Redis was rewound or rebuilt since, another one
may stand under its id. A draw that was rejected shows that the gate has lost its memory: it is declared cold, and a
preheat counts everything anew; nothing is given back here.

KEYS
  1 requests    hash    "<user> <request id>" -> "<draw id> <prize no> <state>"
  2 pending     stream  see draw.lua
  3 generation  string  set last by the preheat

ARGV
  1 wrong  "1": the gate is cold from now on
  then four values for each entry
    entry_id  its id in the pending stream
    draw_id   what it holds as its draw's number
    request   "<user> <request id>"
    answer    "<draw id> <prize no> <state>" that answers its request from now on

Returns the number of entries this call took off.
]]
if ARGV[1] == '1' then
  redis.call('DEL', KEYS[3])
end
local taken = 0
for i = 2, #ARGV, 4 do
  local entry = redis.call('XRANGE', KEYS[2], ARGV[i], ARGV[i], 'COUNT', 1)[1]
  if entry then
    if entry[2][1] == 'c' and entry[2][2] == ARGV[i + 1] then
      taken = taken + redis.call('XDEL', KEYS[2], ARGV[i])
      redis.call('HSET', KEYS[1], ARGV[i + 2], ARGV[i + 3])
    end
  end
end
return taken
