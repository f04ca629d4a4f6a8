#pragma once

#include <cstddef>
#include <string_view>

namespace holdfast::engines {

// What one node does. A lock is a text with an expiry, as SET NX PX makes it,
// so that the Redlocks of other languages and ours exclude each other:
//   hf1: id(16) flag session(16) ttl | since | token | who
// KEYS[i] is the lock of ARGV[kRedlockHead + i]: commands as for the other
// scripts, and
//   A acquire token(16) last(16) ms   the counter is set to the last of the
//                  proposed block at once, if the token is above all that was
//                  handed out and above the clock: count 1. As texts, because
//                  to print a number takes Lua as long as half a command
//   W id token     raise the name's counter, and remember the token
//   F id           release, but go on waiting
//   N acquire      renew; where the node has lost it, take it anew (which does
//                  not count for this renewal: status `done`)
//   ARGV[1] max_ttl in ms   ARGV[2] who   ARGV[3] 1: the set is new
//   ARGV[4] 1: the client knows that the node is young   ARGV[5] prefix
// Failures: count 2: the node is young; 3: it has another max_ttl; 4: the
// holder is another program.
// The reply: the node's clock and the outcomes in one text, then what was refused.
// Who is let in next is told on a channel of its own: prefix, this, session.
inline constexpr std::string_view kRedlockBells = "holdfast:bell:";
inline constexpr int kRedlockHead = 5;
inline constexpr std::size_t kRedlockClock = 8;  // bytes, before the outcomes
inline constexpr int kTookProposal = 1;
inline constexpr int kYoungNode = 2;
inline constexpr int kOtherMaxTtl = 3;
inline constexpr int kForeignHolder = 4;
inline constexpr std::string_view kRedlockScript = R"lua(
local GRANTED, BUSY, RENEWED, RELEASED, DONE, NOT_HELD, REVOKED, FAILED = 0, 2, 3, 4, 5, 6, 7, 9
local call, pcall, max, format, pack = redis.call, redis.pcall, math.max, string.format, struct.pack
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local since = time[1] .. ('00000' .. time[2]):sub(-6)
local max_ttl, who, prefix = tonumber(ARGV[1]), ARGV[2], ARGV[5]
local tokens, waiters = prefix .. 'holdfast:token:', prefix .. 'holdfast:waiters:'

local function outcome(status, left, token, count)
  return pack('<BBI4I4ddd', status, 0, 0, count or 0, token or 0, left or 0, 0)
end

-- A node that does not know this has lost its data, or is new.
local config = prefix .. 'holdfast:redlock'
local known = call('HMGET', config, 'max_ttl', 'born')
local failed
if not known[1] then
  local born = ARGV[3] == '1' and '0' or since
  local made = pcall('HSET', config, 'max_ttl', ARGV[1], 'born', born)
  failed = type(made) == 'table' and made.err
  known = {ARGV[1], born}
end
local guard = (max_ttl + max_ttl / 100 + 2) * 1000
local young = ARGV[3] ~= '1' and (ARGV[4] == '1' or now < tonumber(known[2]) + guard)
local other = known[1] ~= ARGV[1]

-- False if somebody has it.
local function take(key, id, session, ms, token)
  local text = 'hf1:' .. id .. '-' .. session .. ms .. '|' .. since .. '|' .. token .. '|' .. who
  return pcall('SET', key, text, 'NX', 'PX', ms)
end
local function find(key)
  local stored = pcall('GET', key)
  if type(stored) == 'table' then return nil, stored.err end
  return stored
end
local function mine(stored, id) return stored:sub(5, 20) == id and stored:sub(1, 4) == 'hf1:' end

-- What was handed out last. Where that has run out, the clock is beyond it.
local function candidate(key)
  local counter = call('GET', tokens .. key)
  return max((counter and tonumber(counter) or 0) + 1, now)
end
local function raise(key, last, text, how)
  local ms = last - now < 20000 and '21' or math.ceil((last - now) / 1000) + 1
  return pcall('SET', tokens .. key, text, 'PX', ms, how)
end

-- nil: somebody has it.
local function take_if_free(key, words)
  local token, last, ms = words:sub(60, 75), words:sub(76, 91), words:sub(92)
  local taken = take(key, words:sub(2, 17), words:sub(18, 33), ms, token)
  if not taken then return nil end
  if taken.err then return nil, taken.err end
  local proposal = tonumber(token)
  if proposal >= now then
    local set = raise(key, proposal + 63, last, 'NX')
    if not set and proposal >= candidate(key) then set = raise(key, proposal + 63, last, 'XX') end
    if set and not set.err then return outcome(GRANTED, ms * 1000, proposal, 1) end
  end
  return outcome(GRANTED, ms * 1000, candidate(key))
end
local function left_of(key)
  local pttl = call('PTTL', key)
  return (pttl < 0 and max_ttl or pttl) * 1000
end
local function give_back(key, words)
  local stored, err = find(key)
  if err then return nil, err end
  if not stored then return outcome(NOT_HELD) end
  if not mine(stored, words:sub(2, 17)) then return outcome(BUSY, left_of(key)) end
  local gone = pcall('DEL', key)
  if gone ~= 1 then return nil, gone.err end
  return outcome(RELEASED)
end

local outcomes, reply, at = {}, {''}, 1
local function answer(result, err)
  outcomes[at] = result or outcome(FAILED)
  reply[1 + at] = err or ''
  at = at + 1
end

-- What is usual comes first, so that it does not pay for what is defined below: locks that are
-- free, and releases that nobody waits for.
while at <= #KEYS and not (young or other or failed) do
  local key, words = KEYS[at], ARGV[5 + at]
  local letter = words:sub(1, 1)
  local result, err
  if letter == 'A' then
    result, err = take_if_free(key, words)
  elseif letter == 'R' and call('EXISTS', waiters .. key) == 0 then
    result, err = give_back(key, words)
  end
  if not result and not err then break end
  answer(result, err)
end
reply[1] = pack('<d', now) .. table.concat(outcomes)
if at > #KEYS then return reply end

local function error_of(result) return type(result) == 'table' and result.err or nil end
local function milliseconds(micros) return max(math.floor(micros / 1000), 1) end
local function revoked(stored) return stored:sub(21, 21) == 'r' end

local function no_longer_waits(key, id)
  if pcall('ZREM', waiters .. key, id) == 1 then
    pcall('HDEL', waiters .. key .. ':who', id, 'bell:' .. id)
  end
end
local function waits(key, id, session, window)
  local list = waiters .. key
  pcall('ZADD', list, format('%.0f', now + window), id)
  pcall('HSETNX', list .. ':who', id, format('%.0f', now) .. '|' .. who)
  pcall('HSETNX', list .. ':who', 'bell:' .. id, session)
  pcall('PEXPIRE', list, milliseconds(window) + 1)
  pcall('PEXPIRE', list .. ':who', milliseconds(window) + 60000)
end

-- Of all nodes the same one, mostly: two who are told at once split the votes.
local function tell_the_first(key)
  local list = waiters .. key
  local queue = pcall('ZRANGEBYSCORE', list, format('(%.0f', now), '+inf')
  local first, earliest
  for i = 1, #queue do
    local entry = pcall('HGET', list .. ':who', queue[i])
    local since = type(entry) == 'string' and tonumber(entry:match('^%d+'))
    if since and (not earliest or since < earliest) then first, earliest = queue[i], since end
  end
  local session = first and pcall('HGET', list .. ':who', 'bell:' .. first)
  if type(session) == 'string' then
    pcall('PUBLISH', prefix .. 'holdfast:bell:' .. session, first .. '0')
  end
end

local on = {F = give_back}

function on.A(key, words)
  if young then return outcome(FAILED, 0, 0, 2) end
  local result, err = take_if_free(key, words)
  if result or err then return result, err end
  local id, session, mode, permits, limit, ttl, window, flags =
    struct.unpack('<c16c16BI4I4ddB', words, 2)
  local stored, err = find(key)
  if not stored then return nil, err or 'ERR the lock comes and goes' end
  if not mine(stored, id) then
    if flags % 2 == 1 then waits(key, id, session, window) end
    return outcome(BUSY, left_of(key), candidate(key))
  end
  if revoked(stored) then return outcome(REVOKED, left_of(key)) end
  return outcome(GRANTED, left_of(key), candidate(key))
end

function on.W(key, words)
  local id, token = struct.unpack('<c16d', words, 2)
  no_longer_waits(key, id)
  local stored, err = find(key)
  if err then return nil, err end
  if not stored or not mine(stored, id) then return outcome(NOT_HELD) end
  if token + 64 > candidate(key) then
    local last = format('%.0f', token + 63)
    local set = raise(key, token + 63, last, 'NX') or raise(key, token + 63, last, 'XX')
    if set.err then return nil, set.err end
  end
  local head, tail = stored:match('^(hf1:' .. ('.'):rep(33) .. '%d+|%d+|)%d+(|.*)$')
  err = error_of(pcall('SET', key, head .. format('%.0f', token) .. tail, 'KEEPTTL'))
  if err then return nil, err end
  return outcome(GRANTED, left_of(key), token)
end

function on.N(key, words)
  local id, session, mode, permits, limit, ttl = struct.unpack('<c16c16BI4I4d', words, 2)
  local stored, err = find(key)
  if err then return nil, err end
  local ms = milliseconds(ttl)
  if not stored then
    if not young then take(key, id, session, ms, 0) end
    return outcome(young and NOT_HELD or DONE)
  end
  if not mine(stored, id) then return outcome(BUSY, left_of(key)) end
  if revoked(stored) then return outcome(REVOKED, left_of(key)) end
  err = error_of(pcall('PEXPIRE', key, ms))
  if err then return nil, err end
  return outcome(RENEWED, ms * 1000)
end

function on.P(key, words)
  local stored, err = find(key)
  if err then return nil, err end
  if not stored then return outcome(NOT_HELD) end
  if not mine(stored, words:sub(2, 17)) then return outcome(BUSY, left_of(key)) end
  return outcome(revoked(stored) and REVOKED or GRANTED, left_of(key))
end
on.H = on.P

function on.R(key, words)
  no_longer_waits(key, words:sub(2, 17))
  local result, err = give_back(key, words)
  if result and result:byte(1) == RELEASED then tell_the_first(key) end
  return result, err
end

function on.V(key, words)
  local stored, err = find(key)
  if err then return nil, err end
  if not stored then return outcome(NOT_HELD) end
  if words:sub(2) == '!' then
    err = error_of(pcall('DEL', key))
    if not err then tell_the_first(key) end
  elseif stored:sub(1, 4) == 'hf1:' then
    err = error_of(pcall('SET', key, stored:sub(1, 20) .. 'r' .. stored:sub(22), 'KEEPTTL'))
  else
    return outcome(FAILED, 0, 0, 4)
  end
  if err then return nil, err end
  return outcome(RELEASED)
end

while at <= #KEYS do
  if other then
    answer(outcome(FAILED, tonumber(known[1]) * 1000, 0, 3))
  elseif failed then
    answer(nil, failed)
  else
    answer(on[ARGV[5 + at]:sub(1, 1)](KEYS[at], ARGV[5 + at]))
  end
end
reply[1] = pack('<d', now) .. table.concat(outcomes)
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
