#pragma once

#include <cstddef>
#include <string_view>

namespace holdfast::engines {

// What one node does. A lock is a text with an expiry, as SET NX PX makes it,
// so that the Redlocks of other languages and ours exclude each other:
//   hf1: id(16) flag session(16) ttl | since | token | who
// A counter is the token that was handed out last: of the block that begins there.
//
//   KEYS[1] what the node knows of itself: since when it has its data (16 digits), max_ttl
//   and for each command the lock, and its counter (A) or the list of those who wait
//   ARGV[1] max_ttl in ms   ARGV[2] for how long a node is young, in us; 0: the set is new
//   ARGV[3] prefix   and for each command its letter and
//   A acquire   window or nothing, the text as it is before `since` and after it, ttl in ms,
//               proposal: taken if it is above all that was handed out and above the clock
//   N renew     as A; where the node has lost it, take it anew (which does not count for this
//               renewal: status `done`)
//   W written   hf1:id token     raise the name's counter, and remember the token
//   R P         hf1:id           release, look
//   F           hf1:id           release, but go on waiting
//   V revoke    ! or nothing
// Numbers are texts: to print one takes Lua as long as half a command.
// Failures: count 2: the node is young; 3: it has another max_ttl; 4: the
// holder is another program.
// The reply: the node's clock, as seconds.us|, and what became of each command: a letter (t: taken
// with the proposal, r: released) or a packed outcome. If any was refused, a list of that text and
// the reasons.
// Who is let in next is told on a channel of its own: prefix, this, session.
inline constexpr std::string_view kRedlockBells = "holdfast:bell:";
inline constexpr std::string_view kRedlockSelf = "holdfast:redlock";
inline constexpr std::string_view kRedlockTokens = "holdfast:token:";
inline constexpr std::string_view kRedlockWaiters = "holdfast:waiters:";
// Behind the prefix lie our own keys as well: a lock of such a name would be one of them.
constexpr bool is_redlock_key(std::string_view name) {
  return name.starts_with(kRedlockSelf) || name.starts_with(kRedlockTokens) ||
         name.starts_with(kRedlockWaiters);
}
inline constexpr std::size_t kRedlockHead = 3;
inline constexpr char kTookIt = 't';
inline constexpr char kGaveBack = 'r';
inline constexpr int kTookProposal = 1;
inline constexpr int kYoungNode = 2;
inline constexpr int kOtherMaxTtl = 3;
inline constexpr int kForeignHolder = 4;
inline constexpr std::string_view kRedlockScript = R"lua(
local call, pcall = redis.call, redis.pcall
local time, seen = call('TIME'), call('MGET', unpack(KEYS))
local now = time[1] * 1000000 + time[2]
local self = seen[1]
local said, refused = {time[1], '.', time[2], '|'}, nil
local at, word = 1, 4  -- which command, and its first word

-- What is usual comes first, and what only others need is not even made before: locks that are
-- free, and releases that nobody waits for. seen[key]: what became of it since it was looked at.
if self and self:sub(17) == ARGV[1] and now >= self:sub(1, 16) + ARGV[2] then
  while 2 * at < #KEYS do
    local key, other, letter = KEYS[2 * at], KEYS[2 * at + 1], ARGV[word]
    if letter == 'A' then
      local text = ARGV[word + 2] .. time[1] .. '.' .. time[2] .. ARGV[word + 3]
      local taken = pcall('SET', key, text, 'NX', 'PX', ARGV[word + 4])
      if not taken or taken.err then break end
      seen[key] = text
      local token = ARGV[word + 5]
      local ahead, last = token - now, seen[other] or seen[2 * at + 1]
      if ahead < 0 or last and token - last < 64 then break end
      local life = ahead < 20000 and '21' or math.ceil(ahead / 1000) + 1
      if pcall('SET', other, token, 'PX', life).err then break end
      seen[other] = token
      said[4 + at] = 't'
      word = word + 6
    elseif letter == 'R' then
      local text = seen[key]
      if text == nil then text = seen[2 * at] end
      if not text or text:sub(1, 20) ~= ARGV[word + 1] or call('EXISTS', other) == 1 then break end
      if pcall('DEL', key) ~= 1 then break end
      seen[key] = false
      said[4 + at] = 'r'
      word = word + 2
    else
      break
    end
    at = at + 1
  end
  if 2 * at > #KEYS then return table.concat(said) end
end

local GRANTED, BUSY, RENEWED, RELEASED, DONE, NOT_HELD, REVOKED, FAILED = 0, 2, 3, 4, 5, 6, 7, 9
local max, format, pack = math.max, string.format, struct.pack
local max_ttl, guard, prefix = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local tokens, waiters = prefix .. 'holdfast:token:', prefix .. 'holdfast:waiters:'
local WORDS = {A = 6, N = 6, W = 3}

local function outcome(status, left, token, count)
  return pack('<BBI4I4ddd', status, 0, 0, count or 0, token or 0, left or 0, 0)
end
local function error_of(result) return type(result) == 'table' and result.err or nil end
local function milliseconds(micros) return max(math.ceil(micros / 1000), 1) end

-- A node that does not know this has lost its data, or is new. It was a hash once.
local failed
if not self then
  local once = pcall('HMGET', KEYS[1], 'max_ttl', 'born')
  local born = once[1] and once[2] or guard == 0 and 0 or now
  self = format('%016.0f', born) .. (once[1] or ARGV[1])
  failed = error_of(pcall('SET', KEYS[1], self))
end
local young = now < self:sub(1, 16) + guard
local theirs = self:sub(17)

local function find(key)
  local stored = pcall('GET', key)
  if type(stored) == 'table' then return nil, stored.err end
  return stored
end
local function mine(stored, owner) return stored:sub(1, 20) == owner end
local function revoked(stored) return stored:sub(21, 21) == 'r' end
local function left_of(key)
  local pttl = call('PTTL', key)
  return (pttl < 0 and max_ttl or pttl) * 1000
end

-- What was handed out last. Where that has run out, the clock is beyond it.
local function candidate(key)
  local counter = call('GET', tokens .. key)
  return max(counter and counter + 64 or 1, now)
end
local function raise(key, token)
  return error_of(pcall('SET', tokens .. key, token, 'PX', milliseconds(token + 63 - now) + 1))
end

-- False if somebody has it.
local function take(key)
  local text = ARGV[word + 2] .. time[1] .. '.' .. time[2] .. ARGV[word + 3]
  return pcall('SET', key, text, 'NX', 'PX', ARGV[word + 4])
end

local function no_longer_waits(key, owner)
  local id = owner:sub(5)
  if pcall('ZREM', waiters .. key, id) == 1 then
    pcall('HDEL', waiters .. key .. ':who', id, 'bell:' .. id)
  end
end
local function waits(key, window)
  local list, id, session = waiters .. key, ARGV[word + 2]:sub(5, 20), ARGV[word + 2]:sub(22, 37)
  local who = ARGV[word + 3]:match('^|%d+|(.*)$')
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

local on = {}

function on.A(key, window)
  if young then return outcome(FAILED, 0, 0, 2) end
  local stored, err = find(key)
  if err then return nil, err end
  if not stored then
    err = error_of(take(key))
    if err then return nil, err end
    local token, next_one = ARGV[word + 5], candidate(key)
    if tonumber(token) >= next_one and not raise(key, token) then return 't' end
    return outcome(GRANTED, ARGV[word + 4] * 1000, next_one)
  end
  if not mine(stored, ARGV[word + 2]:sub(1, 20)) then
    if window ~= '' then waits(key, tonumber(window)) end
    return outcome(BUSY, left_of(key), candidate(key))
  end
  return outcome(revoked(stored) and REVOKED or GRANTED, left_of(key), candidate(key))
end

function on.W(key, owner)
  no_longer_waits(key, owner)
  local stored, err = find(key)
  if err then return nil, err end
  if not stored or not mine(stored, owner) then return outcome(NOT_HELD) end
  local token = ARGV[word + 2]
  if token + 64 > candidate(key) then
    err = raise(key, token)
    if err then return nil, err end
  end
  local head, tail = stored:match('^(hf1:' .. ('.'):rep(33) .. '%d+|[%d.]+|)%d+(|.*)$')
  err = error_of(pcall('SET', key, head .. token .. tail, 'KEEPTTL'))
  if err then return nil, err end
  return outcome(GRANTED, left_of(key), tonumber(token))
end

function on.N(key)
  local stored, err = find(key)
  if err then return nil, err end
  if not stored then
    if not young then take(key) end
    return outcome(young and NOT_HELD or DONE)
  end
  if not mine(stored, ARGV[word + 2]:sub(1, 20)) then return outcome(BUSY, left_of(key)) end
  if revoked(stored) then return outcome(REVOKED, left_of(key)) end
  err = error_of(pcall('PEXPIRE', key, ARGV[word + 4]))
  if err then return nil, err end
  return outcome(RENEWED, ARGV[word + 4] * 1000)
end

function on.P(key, owner)
  local stored, err = find(key)
  if err then return nil, err end
  if not stored then return outcome(NOT_HELD) end
  if not mine(stored, owner) then return outcome(BUSY, left_of(key)) end
  return outcome(revoked(stored) and REVOKED or GRANTED, left_of(key))
end

function on.F(key, owner)
  local stored, err = find(key)
  if err then return nil, err end
  if not stored then return outcome(NOT_HELD) end
  if not mine(stored, owner) then return outcome(BUSY, left_of(key)) end
  local gone = pcall('DEL', key)
  if gone ~= 1 then return nil, gone.err end
  return 'r'
end

function on.R(key, owner)
  no_longer_waits(key, owner)
  local result, err = on.F(key, owner)
  if result == 'r' then tell_the_first(key) end
  return result, err
end

function on.V(key, how)
  local stored, err = find(key)
  if err then return nil, err end
  if not stored then return outcome(NOT_HELD) end
  if how == '!' then
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

while 2 * at < #KEYS do
  local letter, result, err = ARGV[word], nil, failed
  if theirs ~= ARGV[1] then
    result = outcome(FAILED, tonumber(theirs) * 1000, 0, 3)
  elseif not failed then
    result, err = on[letter](KEYS[2 * at], ARGV[word + 1])
  end
  said[4 + at] = result or outcome(FAILED)
  if err then
    refused = refused or {}
    refused[at] = err
  end
  word = word + (WORDS[letter] or 2)
  at = at + 1
end
local text = table.concat(said)
if not refused then return text end
local reply = {text}
for i = 1, at - 1 do reply[1 + i] = refused[i] or '' end
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
