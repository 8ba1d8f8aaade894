--[[
load_shadow: add a page of settled claims from the database to the keys a preheat is building.

KEYS
  1 shadow takers      hash  user -> "<count> <last seq>"
  2 shadow requests    hash  "<user> <request id>" -> "<claim id> <state>"
  3 shadow day prefix  prefix of hash  user -> count of one local day

ARGV, six for each claim, issued ones before rejected ones, older before newer
  claim_id    digits
  user_id     text without spaces
  request_id  text without spaces, or "" for a coupon that nobody claimed, as of a campaign
  seq         the claim's number of this user
  day         number of the local day in which it was accepted, or "" when the day no longer matters
  state       "issued", "held" for review, or the reason of the rejection

Returns the number of claims that were issued or are held.
]]
local issued = 0
for i = 1, #ARGV, 6 do
  local user, state = ARGV[i + 1], ARGV[i + 5]
  -- The first claim of a request answers it: a duplicate was rejected in its favour.
  if ARGV[i + 2] ~= '' then
    redis.call('HSETNX', KEYS[2], user .. ' ' .. ARGV[i + 2], ARGV[i] .. ' ' .. state)
  end
  local count, seq = 0, 0
  local taker = redis.call('HGET', KEYS[1], user)
  if taker then
    local space = string.find(taker, ' ', 1, true)
    count, seq = tonumber(string.sub(taker, 1, space - 1)), tonumber(string.sub(taker, space + 1))
  end
  seq = math.max(seq, tonumber(ARGV[i + 3]))
  if state == 'issued' or state == 'held' then
    issued = issued + 1
    count = count + 1
    if ARGV[i + 4] ~= '' then
      redis.call('HINCRBY', KEYS[3] .. ARGV[i + 4], user, 1)
      redis.call('EXPIRE', KEYS[3] .. ARGV[i + 4], 3600)
    end
  end
  redis.call('HSET', KEYS[1], user, count .. ' ' .. seq)
end
-- What a build that died has left goes by itself.
redis.call('EXPIRE', KEYS[1], 3600)
redis.call('EXPIRE', KEYS[2], 3600)
return issued
