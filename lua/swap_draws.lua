--[[
swap_draws: put the keys a preheat of a lottery has built in the place of the live ones, in one step, under traffic.

The caller keeps settling out for the while, so every draw is either in the shadow (settled) or in the pending stream.
Entries of the stream that the database already knows are taken off here; the others are counted in.

KEYS
  1 meta               hash    see draw.lua
  2 generation         string  set last
  3 stock              hash    prize no -> how many are left
  4 takers             hash    user -> draws
  5 requests           hash    "<user> <request id>" -> "<draw id> <prize no> <state>"
  6 pending            stream  see draw.lua
  7 day prefix         prefix of hash  user -> draws of one local day
  8 shadow takers      hash    takes the place of 4
  9 shadow requests    hash    takes the place of 5
 10 shadow day prefix  prefix of hash  takes the place of 7 for the days named
 11 told               string  newest version told while cold; see sync_lottery.lua

ARGV
  1 version     number of the lottery's last change that the caller knows
  2 generation  text that names this build
  3 days        numbers of the local days to replace, joined by ","
  4 day_ttl_s   seconds a day's hash is kept
  5 stock       "<prize no>:<left in the database>" joined by ","
  6..           pairs of field and value for meta

Returns
  {STALE}                the live keys know a newer version of the lottery: read it and build again
  {SWAPPED, pending}     pending: draws that wait to be settled
]]
-- part: swap_keys
if is_overtaken(KEYS[1], KEYS[2], KEYS[11], ARGV[1]) then
  return { 'STALE' }
end

-- What the settling would read a draw from; anything else is left for it to set aside.
local function is_draw(field)
  for _, name in ipairs({ 'c', 'p', 't' }) do
    if not is_number(field[name]) then
      return false
    end
  end
  return field.u and field.u ~= '' and field.r and field.d
end

local days = ',' .. ARGV[3] .. ','
local pending, taken = 0, {}
for _, entry in ipairs(redis.call('XRANGE', KEYS[6], '-', '+')) do
  local field = fields_of(entry)
  if is_draw(field) then
    local request = field.u .. ' ' .. field.r
    local stored = redis.call('HGET', KEYS[9], request)
    if stored and string.sub(stored, 1, #field.c + 1) == field.c .. ' ' then
      redis.call('XDEL', KEYS[6], entry[1])
    else
      pending = pending + 1
      taken[field.p] = (taken[field.p] or 0) + 1
      if not stored then
        redis.call('HSET', KEYS[9], request, field.c .. ' ' .. field.p .. ' queued')
      end
      redis.call('HINCRBY', KEYS[8], field.u, 1)
      if field.d ~= '' and string.find(days, ',' .. field.d .. ',', 1, true) then
        redis.call('HINCRBY', KEYS[10] .. field.d, field.u, 1)
      end
    end
  end
end

replace(KEYS[4], KEYS[8])
replace(KEYS[5], KEYS[9])
replace_days(KEYS[7], KEYS[10], ARGV[3], ARGV[4])

redis.call('DEL', KEYS[1], KEYS[3], KEYS[11])
for prize_no, left in string.gmatch(ARGV[5], '(%d+):(%d+)') do
  -- Below zero where a Redis that was rewound has drawn a prize twice: the settling rejects what is too much.
  redis.call('HSET', KEYS[3], prize_no, math.max(0, tonumber(left) - (taken[prize_no] or 0)))
end
redis.call('HSET', KEYS[1], 'version', ARGV[1])
for i = 6, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
redis.call('SET', KEYS[2], ARGV[2])
return { 'SWAPPED', pending }
