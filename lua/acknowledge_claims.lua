--[[
acknowledge_claims: take settled claims off the pending stream and write down how they ended, in one step.

The batch is the head of the stream as it was read. When all its claims are still queued nothing else can stand among
them, and it is cut off as a whole. Otherwise Redis was rewound, rebuilt or failed over since, or the batch was
acknowledged before: then only entries that hold a claim of the batch are taken out, one by one.

A claim that is held for review keeps what it took; how its review ends is told by end_review.lua.

A rejected claim gives stock, allowance and the face value it drew back to the call that finds it queued (the fence),
and to no other. Behind the same fence the pool passes over what the database has drawn for claims of which the value was
gone.

KEYS
  1 stock       integer units left
  2 takers      hash    user -> "<count> <last seq>"
  3 requests    hash    "<user> <request id>" -> "<claim id> <state>"
  4 claims      hash    claim id -> accepted at (ms), for as long as it is queued
  5 pending     stream  see claim.lua
  6 day prefix  prefix of hash  user -> count of one local day
  7 pool        list    face values nobody has drawn; see claim.lua
  8 meta        hash    see claim.lua

ARGV
  1 first      id in the pending stream of the batch's first entry
  2 keep_from  id in the pending stream right behind the batch's last entry
  3 issued     number of issued claims; two values follow for each:
      claim_id  digits
      request   "<user> <request id>"
  4 rejected   number of rejected claims; five values follow for each, behind the issued ones:
      claim_id  digits
      request   "<user> <request id>"
      day       number of the local day in which it was accepted, or ""
      answer    "<claim id> <state>" that answers its request from now on: its own, or for a duplicate the first claim's
      value     face value it drew from the pool, or ""
  5 redrawn    number of issued claims for which the database has drawn; two values follow for each, behind those:
      claim_id  digits
      value     face value
  6 held       number of claims held for review; two values follow for each, behind those:
      claim_id  digits
      request   "<user> <request id>"
  then the ids in the pending stream of entries that were set aside

Returns the number of rejected claims this call gave back.
]]
local issued, rejected, redrawn = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local held = tonumber(ARGV[6])
local first_rejected = 7 + 2 * issued
local first_redrawn = first_rejected + 5 * rejected
local first_held = first_redrawn + 2 * redrawn
local first_aside = first_held + 2 * held

local queued, batch = 0, {}

for i = first_redrawn, first_held - 1, 2 do
  if redis.call('HEXISTS', KEYS[4], ARGV[i]) == 1 then
    redis.call('HINCRBY', KEYS[8], 'held:' .. ARGV[i + 1], 1)
  end
end

-- In chunks that fit Lua's stack.
for from = 7, first_rejected - 1, 1000 do
  local ids, states = {}, {}
  for i = from, math.min(from + 999, first_rejected - 1), 2 do
    batch[ARGV[i]] = true
    ids[#ids + 1] = ARGV[i]
    states[#states + 1] = ARGV[i + 1]
    states[#states + 1] = ARGV[i] .. ' issued'
  end
  queued = queued + redis.call('HDEL', KEYS[4], unpack(ids))
  redis.call('HSET', KEYS[3], unpack(states))
end

for i = first_held, first_aside - 1, 2 do
  batch[ARGV[i]] = true
  if redis.call('HDEL', KEYS[4], ARGV[i]) == 1 then
    queued = queued + 1
    redis.call('HSET', KEYS[3], ARGV[i + 1], ARGV[i] .. ' held')
  end
end

local given_back = 0
for i = first_rejected, first_redrawn - 1, 5 do
  local claim_id, request, day, answer, value = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
  batch[claim_id] = true
  if redis.call('HDEL', KEYS[4], claim_id) == 1 then
    queued = queued + 1
    given_back = given_back + 1
    redis.call('INCR', KEYS[1])
    if value ~= '' then
      redis.call('LPUSH', KEYS[7], value)
    end
    redis.call('HSET', KEYS[3], request, answer)
    local user = string.sub(request, 1, string.find(request, ' ', 1, true) - 1)
    local taker = redis.call('HGET', KEYS[2], user)
    if taker then
      local space = string.find(taker, ' ', 1, true)
      local count = math.max(0, tonumber(string.sub(taker, 1, space - 1)) - 1)
      redis.call('HSET', KEYS[2], user, count .. string.sub(taker, space))
    end
    if day ~= '' and redis.call('HINCRBY', KEYS[6] .. day, user, -1) <= 0 then
      redis.call('HDEL', KEYS[6] .. day, user)
    end
  end
end

local is_head = #redis.call('XRANGE', KEYS[5], '-', '(' .. ARGV[1], 'COUNT', 1) == 0
if is_head and queued == issued + rejected + held then
  redis.call('XTRIM', KEYS[5], 'MINID', ARGV[2])
  return given_back
end
local aside = {}
for i = first_aside, #ARGV do
  aside[ARGV[i]] = true
end
for _, entry in ipairs(redis.call('XRANGE', KEYS[5], ARGV[1], '(' .. ARGV[2])) do
  local claim_id
  for i = 1, #entry[2], 2 do
    if entry[2][i] == 'c' then
      claim_id = entry[2][i + 1]
    end
  end
  local waits = claim_id and redis.call('HEXISTS', KEYS[4], claim_id) == 1
  if claim_id and batch[claim_id] or aside[entry[1]] and not waits then
    redis.call('XDEL', KEYS[5], entry[1])
  end
end
return given_back
