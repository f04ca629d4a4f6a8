#pragma once

#include <string_view>

// Locks as other libraries keep them, so that their programs and ours exclude
// each other. Commands and outcomes are packed as for the fair script; there
// is no queue and no token. Who of ours waits is noted beside the lock, for
// people alone: in a sorted set, by the time until which to believe it.
namespace holdfast::engines {

// What the scripts below share. They define
//   find(key)             what is stored, its time to live in ms; nil if free
//   is_ours(stored, id)   is it the request's; is it revoked
//   take(key, id, ms, info), renew(key, stored, id, ms), free(key, stored, id),
//   clear(key), revoke(key, stored): each an error of Redis, or nil
//   info_of(stored)       what take() was given
inline constexpr std::string_view kUnfairFrame = R"lua(
local GRANTED, QUEUED, BUSY, RENEWED, RELEASED, DONE, NOT_HELD, REVOKED, FAILED =
  0, 1, 2, 3, 4, 5, 6, 7, 9
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local who = ARGV[2]

local function waiters(key) return 'holdfast:waiters:' .. key end

local function outcome(status, lease, look, count, gave_back)
  return struct.pack('<BBI4I4ddd', status, gave_back or 0, 0, count or 0, 0, lease or 0, look or 0)
end

local function held(status, pttl) return outcome(status, max(pttl, 0) * 1000) end

local function milliseconds(micros) return max(math.floor(micros / 1000), 1) end

local function no_longer_waits(key, id)
  if redis.pcall('ZREM', waiters(key), id) == 1 then
    redis.pcall('HDEL', waiters(key) .. ':who', id)
  end
end

local function waits(key, id, ttl, window)
  local list = waiters(key)
  -- The member stays the same; the text beside it says who and since when.
  redis.pcall('ZADD', list, string.format('%.0f', now + window), id)
  redis.pcall('HSETNX', list .. ':who', id, string.format('%.0f', now) .. '|' .. who)
  redis.pcall('PEXPIRE', list, milliseconds(window) + 1)
  redis.pcall('PEXPIRE', list .. ':who', milliseconds(window) + 60000)
end

local function acquire(key, words, at, gave_back)
  local id, session, mode, permits, limit, ttl, window, flags =
    struct.unpack('<c16c16BI4I4ddB', words, at)
  local stored, pttl, err = find(key)
  if err then return nil, err end
  local ms = milliseconds(ttl)
  if stored then
    local mine, revoked = is_ours(stored, id)
    if mine then
      no_longer_waits(key, id)
      return held(revoked and REVOKED or GRANTED, pttl)
    end
  elseif not gave_back then
    err = take(key, id, ms, '-' .. session .. ms .. '|' .. string.format('%.0f', now) .. '|' .. who)
    if err then return nil, err end
    no_longer_waits(key, id)
    return outcome(GRANTED, ms * 1000)
  end
  if flags % 2 == 0 then return outcome(BUSY, 0, 0, 0, gave_back) end
  waits(key, id, ttl, window)
  -- A key in its last millisecond has 0 left; one without an expiry, -1.
  return outcome(QUEUED, 0, ((pttl or -1) + 1) * 1000, 0, gave_back)
end

local function release(key, id)
  no_longer_waits(key, id)
  local stored, pttl, err = find(key)
  if err then return false, err end
  if not stored or not is_ours(stored, id) then return false end
  err = free(key, stored, id)
  return err == nil, err
end

local on = {}

function on.A(key, words) return acquire(key, words, 2) end

function on.N(key, words)
  local id = words:sub(2)
  local stored, pttl, err = find(key)
  if err then return nil, err end
  local mine, revoked
  if stored then mine, revoked = is_ours(stored, id) end
  if not mine then return outcome(NOT_HELD) end
  if revoked then return held(REVOKED, pttl) end
  local ms = tonumber(info_of(stored):match('^.' .. ('.'):rep(16) .. '(%d+)|'))
  err = renew(key, stored, id, ms)
  if err then return nil, err end
  return outcome(RENEWED, ms * 1000)
end

function on.P(key, words)
  local id = words:sub(2)
  local stored, pttl, err = find(key)
  if err then return nil, err end
  local mine, revoked
  if stored then mine, revoked = is_ours(stored, id) end
  if not mine then return outcome(NOT_HELD) end
  return held(revoked and REVOKED or GRANTED, pttl)
end
on.H = on.P

function on.R(key, words)
  local done, err = release(key, words:sub(2))
  if err then return nil, err end
  return outcome(done and RELEASED or NOT_HELD)
end

-- Others, who only ask now and then, would never get their turn if we took the
-- lock again at once.
function on.Q(key, words)
  local done, err = release(key, words:sub(2, 17))
  if err then return nil, err end
  return acquire(key, words, 18, done and 1 or nil)
end

function on.V(key, words)
  local stored, pttl, err = find(key)
  if err then return nil, err end
  if not stored then return outcome(DONE) end
  if words:sub(2) == '!' then
    err = clear(key)
  elseif not info_of(stored) then
    return outcome(FAILED)
  else
    local session = info_of(stored):sub(2, 17)
    err = revoke(key, stored)
    if not err then redis.pcall('PUBLISH', ARGV[3] .. session, id_of(stored) .. '0') end
  end
  if err then return nil, err end
  return outcome(DONE, 0, 0, 1)
end

local refused, any = {}, false
local outcomes = {}
for i = 1, #KEYS do
  local key, words = KEYS[i], ARGV[3 + i]
  local result, err
  if not refused[key] then
    result, err = on[words:sub(1, 1)](key, words)
    if err then
      refused[key] = err
      any = true
    end
  end
  outcomes[i] = result or outcome(FAILED)
end
local reply = {table.concat(outcomes)}
if any then
  for i = 1, #KEYS do reply[1 + i] = refused[KEYS[i]] or '' end
end
return reply
)lua";

// {now, {info or '', ttl, {waiter...}}, ...}; nothing for a lock that is free.
inline constexpr std::string_view kUnfairLookFrame = R"lua(
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local reply = {now}
for i = 1, #KEYS do
  local list = 'holdfast:waiters:' .. KEYS[i]
  local stored, pttl, err = find(KEYS[i])
  local each = {'', -2, {}}
  if stored and not err then each[1], each[2] = info_of(stored) or '?', pttl end
  local queue = redis.pcall('ZRANGEBYSCORE', list, string.format('(%.0f', now), '+inf')
  for j = 1, #queue do
    each[3][j] = redis.call('HGET', list .. ':who', queue[j]) or '0|'
  end
  reply[1 + i] = each
end
return reply
)lua";

// A text with an expiry, as SET NX PX makes it: redis-py, redsync, redlock for
// Node, redis++. Ours begins with "hf1:", the request's id and the info.
inline constexpr std::string_view kSimpleStore = R"lua(
local max = math.max
local function error_of(result) return type(result) == 'table' and result.err or nil end
local function find(key)
  local stored = redis.pcall('GET', key)
  if type(stored) == 'table' then return nil, nil, stored.err end
  if not stored then return nil end
  return stored, redis.call('PTTL', key)
end
local function id_of(stored) return stored:sub(5, 20) end
local function info_of(stored) return stored:sub(1, 4) == 'hf1:' and stored:sub(21) or nil end
local function is_ours(stored, id)
  local info = info_of(stored)
  return info ~= nil and id_of(stored) == id, info ~= nil and info:sub(1, 1) == 'r'
end
local function take(key, id, ms, info)
  return error_of(redis.pcall('SET', key, 'hf1:' .. id .. info, 'NX', 'PX', ms))
end
local function renew(key, stored, id, ms) return error_of(redis.pcall('PEXPIRE', key, ms)) end
local function free(key, stored, id) return error_of(redis.pcall('DEL', key)) end
local function clear(key) return error_of(redis.pcall('DEL', key)) end
local function revoke(key, stored)
  return error_of(redis.pcall('SET', key, stored:sub(1, 20) .. 'r' .. stored:sub(22), 'KEEPTTL'))
end
)lua";

// Redisson's RLock: a hash that counts the holds of "uuid:thread", and a
// message on its channel when the last hold ends. We add a field of ours.
inline constexpr std::string_view kRedissonStore = R"lua(
local max = math.max
local INFO = 'holdfast'
local function error_of(result) return type(result) == 'table' and result.err or nil end
local function channel(key)
  if key:find('{', 1, true) then return 'redisson_lock__channel:' .. key end
  return 'redisson_lock__channel:{' .. key .. '}'
end
local function field(id)
  local hex = ('%02x'):rep(16):format(id:byte(1, 16))
  return hex:sub(1, 8) .. '-' .. hex:sub(9, 12) .. '-' .. hex:sub(13, 16) .. '-' ..
    hex:sub(17, 20) .. '-' .. hex:sub(21) .. ':1'
end
local function find(key)
  local info = redis.pcall('HGET', key, INFO)
  if type(info) == 'table' then return nil, nil, info.err end
  if not info and redis.call('EXISTS', key) == 0 then return nil end
  return {info = info or nil, key = key}, redis.call('PTTL', key)
end
local function id_of(stored) return stored.info:sub(-16) end
local function info_of(stored) return stored.info and stored.info:sub(1, -17) end
local function is_ours(stored, id)
  return redis.call('HEXISTS', stored.key, field(id)) == 1,
    stored.info and stored.info:sub(1, 1) == 'r'
end
local function take(key, id, ms, info)
  local err = error_of(redis.pcall('HINCRBY', key, field(id), 1))
  if err then return err end
  redis.call('HSET', key, INFO, info .. id)
  redis.call('PEXPIRE', key, ms)
end
local function renew(key, stored, id, ms) return error_of(redis.pcall('PEXPIRE', key, ms)) end
local function clear(key)
  local err = error_of(redis.pcall('DEL', key))
  if not err then redis.call('PUBLISH', channel(key), '0') end
  return err
end
local function free(key, stored, id)
  return clear(key)
end
local function revoke(key, stored)
  return error_of(redis.pcall('HSET', key, INFO, 'r' .. stored.info:sub(2)))
end
)lua";

}  // namespace holdfast::engines
