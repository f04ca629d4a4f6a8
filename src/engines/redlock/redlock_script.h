#pragma once

#include <string_view>

namespace holdfast::engines {

// What one node does. A lock is a text with an expiry, as SET NX PX makes it,
// so that the Redlocks of other languages and ours exclude each other:
//   hf1: id(16) flag session(16) ttl | since | token | who
// KEYS[i] is the lock of ARGV[kRedlockHead + i]: commands as for the other
// scripts, and
//   W id token     raise the name's counter, and remember the token
//   F id           release, but go on waiting
//   N acquire      renew; where the node has lost it, take it anew (which does
//                  not count for this renewal: status `done`)
//   ARGV[1] max_ttl in ms   ARGV[2] who   ARGV[3] 1: the set is new
//   ARGV[4] 1: the client knows that the node is young   ARGV[5] prefix
// Failures: count 2: the node is young; 3: it has another max_ttl; 4: the
// holder is another program.
// Who is let in next is told on a channel of its own: prefix, this, session.
inline constexpr std::string_view kRedlockBells = "holdfast:bell:";
inline constexpr int kRedlockHead = 5;
inline constexpr int kYoungNode = 2;
inline constexpr int kOtherMaxTtl = 3;
inline constexpr int kForeignHolder = 4;
inline constexpr std::string_view kRedlockScript = R"lua(
local GRANTED, BUSY, RENEWED, RELEASED, DONE, NOT_HELD, REVOKED, FAILED = 0, 2, 3, 4, 5, 6, 7, 9
local max = math.max
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local max_ttl, who, prefix = tonumber(ARGV[1]), ARGV[2], ARGV[5]

local function error_of(result) return type(result) == 'table' and result.err or nil end
local function outcome(status, left, token, count)
  return struct.pack('<BBI4I4ddd', status, 0, 0, count or 0, token or 0, left or 0, 0)
end
local function milliseconds(micros) return max(math.floor(micros / 1000), 1) end

-- A node that does not know this has lost its data, or is new.
local config = prefix .. 'holdfast:redlock'
local known = redis.call('HMGET', config, 'max_ttl', 'born')
local failed
if not known[1] then
  local born = ARGV[3] == '1' and 0 or now
  failed = error_of(redis.pcall('HSET', config, 'max_ttl', ARGV[1], 'born', string.format('%.0f', born)))
  known = {ARGV[1], born}
end
local guard = (max_ttl + max_ttl / 100 + 2) * 1000
local young = ARGV[3] ~= '1' and (ARGV[4] == '1' or now < tonumber(known[2]) + guard)
local other = known[1] ~= ARGV[1]

local function counter_key(key) return prefix .. 'holdfast:token:' .. key end
local function waiters(key) return prefix .. 'holdfast:waiters:' .. key end

local function no_longer_waits(key, id)
  if redis.pcall('ZREM', waiters(key), id) == 1 then
    redis.pcall('HDEL', waiters(key) .. ':who', id, 'bell:' .. id)
  end
end
local function waits(key, id, session, window)
  local list = waiters(key)
  redis.pcall('ZADD', list, string.format('%.0f', now + window), id)
  redis.pcall('HSETNX', list .. ':who', id, string.format('%.0f', now) .. '|' .. who)
  redis.pcall('HSETNX', list .. ':who', 'bell:' .. id, session)
  redis.pcall('PEXPIRE', list, milliseconds(window) + 1)
  redis.pcall('PEXPIRE', list .. ':who', milliseconds(window) + 60000)
end

-- Of all nodes the same one, mostly: two who are told at once split the votes.
local function tell_the_first(key)
  local list = waiters(key)
  local queue = redis.pcall('ZRANGEBYSCORE', list, string.format('(%.0f', now), '+inf')
  local first, earliest
  for i = 1, #queue do
    local entry = redis.pcall('HGET', list .. ':who', queue[i])
    local since = type(entry) == 'string' and tonumber(entry:match('^%d+'))
    if since and (not earliest or since < earliest) then first, earliest = queue[i], since end
  end
  local session = first and redis.pcall('HGET', list .. ':who', 'bell:' .. first)
  if type(session) == 'string' then
    redis.pcall('PUBLISH', prefix .. 'holdfast:bell:' .. session, first .. '0')
  end
end

local function find(key)
  local stored = redis.pcall('GET', key)
  if type(stored) == 'table' then return nil, 0, stored.err end
  if not stored then return nil, 0 end
  local pttl = redis.call('PTTL', key)
  return stored, pttl < 0 and max_ttl * 1000 or pttl * 1000
end
local function mine(stored, id) return stored:sub(1, 4) == 'hf1:' and stored:sub(5, 20) == id end
local function revoked(stored) return stored:sub(21, 21) == 'r' end

local function take(key, id, session, ms)
  local text = table.concat({'hf1:', id, '-', session, ms, '|', string.format('%.0f', now), '|0|', who})
  return error_of(redis.pcall('SET', key, text, 'NX', 'PX', ms))
end

local function candidate(key)
  local counter = redis.call('GET', counter_key(key))
  return max((counter and tonumber(counter) or 0) + 1, now)
end

local on = {}

function on.A(key, words)
  local id, session, mode, permits, limit, ttl, window, flags =
    struct.unpack('<c16c16BI4I4ddB', words, 2)
  if young then return outcome(FAILED, 0, 0, 2) end
  local stored, left, err = find(key)
  if err then return nil, err end
  local ms = milliseconds(ttl)
  if not stored then
    err = take(key, id, session, ms)
    if err then return nil, err end
    left = ms * 1000
  elseif not mine(stored, id) then
    if flags % 2 == 1 then waits(key, id, session, window) end
    return outcome(BUSY, left)
  elseif revoked(stored) then
    return outcome(REVOKED, left)
  end
  return outcome(GRANTED, left, candidate(key))
end

function on.W(key, words)
  local id, token = struct.unpack('<c16d', words, 2)
  no_longer_waits(key, id)
  local last = token + 63
  local stored, left, err = find(key)
  if err then return nil, err end
  if not stored or not mine(stored, id) then return outcome(NOT_HELD) end
  if last > candidate(key) - 1 then
    err = error_of(redis.pcall('SET', counter_key(key), string.format('%.0f', last), 'PX',
                               math.ceil(max(last - now, 0) / 1000) + 1))
    if err then return nil, err end
  end
  local head, tail = stored:match('^(hf1:' .. ('.'):rep(33) .. '%d+|%d+|)%d+(|.*)$')
  err = error_of(redis.pcall('SET', key, head .. string.format('%.0f', token) .. tail, 'KEEPTTL'))
  if err then return nil, err end
  return outcome(GRANTED, left, token)
end

function on.N(key, words)
  local id, session, mode, permits, limit, ttl = struct.unpack('<c16c16BI4I4d', words, 2)
  local stored, left, err = find(key)
  if err then return nil, err end
  local ms = milliseconds(ttl)
  if not stored then
    if not young then take(key, id, session, ms) end
    return outcome(young and NOT_HELD or DONE)
  end
  if not mine(stored, id) then return outcome(BUSY, left) end
  if revoked(stored) then return outcome(REVOKED, left) end
  err = error_of(redis.pcall('PEXPIRE', key, ms))
  if err then return nil, err end
  return outcome(RENEWED, ms * 1000)
end

function on.P(key, words)
  local id = words:sub(2, 17)
  local stored, left, err = find(key)
  if err then return nil, err end
  if not stored then return outcome(NOT_HELD) end
  if not mine(stored, id) then return outcome(BUSY, left) end
  return outcome(revoked(stored) and REVOKED or GRANTED, left)
end
on.H = on.P

function on.F(key, words)
  local id = words:sub(2, 17)
  local stored, left, err = find(key)
  if err then return nil, err end
  if not stored then return outcome(NOT_HELD) end
  if not mine(stored, id) then return outcome(BUSY, left) end
  err = error_of(redis.pcall('DEL', key))
  if err then return nil, err end
  return outcome(RELEASED)
end

function on.R(key, words)
  no_longer_waits(key, words:sub(2, 17))
  local result, err = on.F(key, words)
  if not err and result:byte(1) == RELEASED then tell_the_first(key) end
  return result, err
end

function on.V(key, words)
  local stored, left, err = find(key)
  if err then return nil, err end
  if not stored then return outcome(NOT_HELD) end
  if words:sub(2) == '!' then
    err = error_of(redis.pcall('DEL', key))
    if not err then tell_the_first(key) end
  elseif stored:sub(1, 4) == 'hf1:' then
    err = error_of(redis.pcall('SET', key, stored:sub(1, 20) .. 'r' .. stored:sub(22), 'KEEPTTL'))
  else
    return outcome(FAILED, 0, 0, 4)
  end
  if err then return nil, err end
  return outcome(RELEASED)
end

local outcomes, reply = {}, {''}
for i = 1, #KEYS do
  local result, err
  if other then
    result = outcome(FAILED, tonumber(known[1]) * 1000, 0, 3)
  elseif failed then
    err = failed
  else
    result, err = on[ARGV[5 + i]:sub(1, 1)](KEYS[i], ARGV[5 + i])
  end
  outcomes[i] = result or outcome(FAILED)
  reply[1 + i] = err or ''
end
reply[1] = table.concat(outcomes)
return reply
)lua";

// {now, {text of the lock or '', ttl, {waiter...}}, ...}
inline constexpr std::string_view kRedlockLook = R"lua(
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local reply = {now}
for i = 1, #KEYS do
  local list = ARGV[1] .. 'holdfast:waiters:' .. KEYS[i]
  local stored = redis.pcall('GET', KEYS[i])
  local each = {'', 0, {}}
  if type(stored) == 'string' then each[1], each[2] = stored, redis.call('PTTL', KEYS[i]) end
  local queue = redis.call('ZRANGEBYSCORE', list, string.format('(%.0f', now), '+inf')
  for j = 1, #queue do
    each[3][j] = redis.call('HGET', list .. ':who', queue[j]) or '0|'
  end
  reply[1 + i] = each
end
return reply
)lua";

}  // namespace holdfast::engines
