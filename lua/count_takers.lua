--[[
count_takers: count the users to whom a batch has issued coupons, each piece of a shard once.

Without it a user would claim on top of what a campaign gave him, only to be rejected when the claim is settled.

KEYS
  1 meta        hash    see claim.lua; the field "step:<batch>.<shard>" is the member up to which a shard was counted
  2 generation  string  set last by the preheat
  3 takers      hash    user -> "<count> <last seq>"
  4 day prefix  prefix of hash  user -> count of one local day

ARGV
  1 step  name of the field in meta
  2 from  member up to which the shard was counted before this piece
  3 to    member up to which it is counted after it
  4 day   number of the local day of the issue, or "" when no daily limit holds
  5..     user ids, 1,000 at most, of whoever got a coupon in this piece; once for each coupon

Returns one of
  {COUNTED}
  {STALE}            they are counted already
  {BEHIND, member}   the shard was counted up to this member, before or amid the piece: count from there
  {NOT_WARMED}       the keys are not whole; the preheat will count the users from the database
]]
if redis.call('EXISTS', KEYS[2]) == 0 then
  return { 'NOT_WARMED' }
end
local counted = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
local from, to = tonumber(ARGV[2]), tonumber(ARGV[3])
if counted >= to and to > 0 then
  return { 'STALE' }
end
if counted ~= from then
  return { 'BEHIND', counted }
end
if #ARGV > 4 then
  -- One call for all users, read and written: a call for each would keep Redis from claims several times as long.
  -- A user named twice is counted on from his own last count; of a field written twice HSET keeps the later value.
  local takers, counted, changed = redis.call('HMGET', KEYS[3], unpack(ARGV, 5)), {}, {}
  for i = 1, #ARGV - 4 do
    local user = ARGV[4 + i]
    local stored, count, seq = counted[user] or takers[i], 0, '0'
    if stored then
      local space = string.find(stored, ' ', 1, true)
      count, seq = tonumber(string.sub(stored, 1, space - 1)), string.sub(stored, space + 1)
    end
    counted[user] = (count + 1) .. ' ' .. seq
    changed[2 * i - 1], changed[2 * i] = user, counted[user]
  end
  redis.call('HSET', KEYS[3], unpack(changed))
  if ARGV[4] ~= '' then
    local day_key = KEYS[4] .. ARGV[4]
    local counts, counted_today = redis.call('HMGET', day_key, unpack(ARGV, 5)), {}
    for i = 1, #ARGV - 4 do
      local user = ARGV[4 + i]
      counted_today[user] = (counted_today[user] or tonumber(counts[i] or 0)) + 1
      changed[2 * i] = counted_today[user]
    end
    redis.call('HSET', day_key, unpack(changed))
    if redis.call('TTL', day_key) < 0 then
      redis.call('EXPIRE', day_key, 172800)
    end
  end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return { 'COUNTED' }
