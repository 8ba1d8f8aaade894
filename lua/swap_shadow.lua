--[[
swap_shadow: put the keys a preheat has built in the place of the live ones, in one step, under traffic.

The caller keeps settling out for the while, so every claim is either in the shadow (settled) or in the pending
stream. Entries of the stream that the database already knows are acknowledged here; the others are counted in. The
shadow of a pool holds all that is left in the database: what pending claims have drawn is noted, to be passed over.

KEYS
  1 meta               hash    see claim.lua and sync_template.lua
  2 generation         string  set last
  3 stock              integer units left; below zero when more was taken than there is
  4 takers             hash    user -> "<count> <last seq>"
  5 requests           hash    "<user> <request id>" -> "<claim id> <state>"
  6 claims             hash    claim id -> accepted at (ms)
  7 pending            stream  see claim.lua
  8 day prefix         prefix of hash  user -> count of one local day
  9 shadow takers      hash    takes the place of 4
 10 shadow requests    hash    takes the place of 5
 11 shadow day prefix  prefix of hash  takes the place of 8 for the days named
 12 told               string  newest version told while cold; see sync_template.lua
 13 pool               list    face values nobody has drawn; see claim.lua
 14 shadow pool        list    takes the place of 13

ARGV
  1 version     number of the template's last change that the caller knows
  2 total       units of this bucket: its share of the total without reservations
  3 issued      coupons of this bucket in the database
  4 generation  text that names this build
  5 days        numbers of the local days to replace, joined by ","
  6 day_ttl_s   seconds a day's hash is kept
  7..           pairs of field and value for meta

Returns
  {STALE}                the live keys know a newer version of the template: read it and build again
  {SWAPPED, pending}     pending: claims that wait to be settled
]]
-- part: swap_keys
if is_overtaken(KEYS[1], KEYS[2], KEYS[12], ARGV[1]) then
  return { 'STALE' }
end

-- What the settling would read a claim from; anything else is left for it to set aside. An error in the midst of the
-- swap would leave half of it.
local function is_claim(field)
  for _, name in ipairs({ 'c', 's', 't', 'e' }) do
    if not is_number(field[name]) then
      return false
    end
  end
  if field.v and field.v ~= '' and not is_number(field.v) then
    return false
  end
  return field.u and field.u ~= '' and field.r and field.d and field.h
end

local days = ',' .. ARGV[5] .. ','
local pending = 0
local claims, held = {}, {}
for _, entry in ipairs(redis.call('XRANGE', KEYS[7], '-', '+')) do
  local field = fields_of(entry)
  if is_claim(field) then
    local request = field.u .. ' ' .. field.r
    local stored = redis.call('HGET', KEYS[10], request)
    if stored and string.sub(stored, 1, #field.c + 1) == field.c .. ' ' then
      redis.call('XDEL', KEYS[7], entry[1])
    else
      pending = pending + 1
      claims[#claims + 1] = { field.c, field.t }
      if field.v and field.v ~= '' then
        held[field.v] = (held[field.v] or 0) + 1
      end
      if not stored then
        redis.call('HSET', KEYS[10], request, field.c .. ' queued')
      end
      local count, seq = 0, 0
      local taker = redis.call('HGET', KEYS[9], field.u)
      if taker then
        local space = string.find(taker, ' ', 1, true)
        count, seq = tonumber(string.sub(taker, 1, space - 1)), tonumber(string.sub(taker, space + 1))
      end
      redis.call('HSET', KEYS[9], field.u, (count + 1) .. ' ' .. math.max(seq, tonumber(field.s)))
      if field.d ~= '' and string.find(days, ',' .. field.d .. ',', 1, true) then
        redis.call('HINCRBY', KEYS[11] .. field.d, field.u, 1)
      end
    end
  end
end

replace(KEYS[4], KEYS[9])
replace(KEYS[5], KEYS[10])
replace(KEYS[13], KEYS[14])
replace_days(KEYS[8], KEYS[11], ARGV[5], ARGV[6])
redis.call('UNLINK', KEYS[6])
for _, claim in ipairs(claims) do
  redis.call('HSET', KEYS[6], claim[1], claim[2])
end

redis.call('SET', KEYS[3], string.format('%d', tonumber(ARGV[2]) - tonumber(ARGV[3]) - pending))
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'version', ARGV[1], 'total', ARGV[2])
for i = 7, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
for value, count in pairs(held) do
  redis.call('HSET', KEYS[1], 'held:' .. value, count)
end
redis.call('DEL', KEYS[12])
redis.call('SET', KEYS[2], ARGV[4])
return { 'SWAPPED', pending }
