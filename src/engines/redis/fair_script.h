#pragma once

#include <string_view>

namespace holdfast::engines {

// core/lock_record, step by step, where the data is. One call takes commands
// about many locks, reads and writes each lock once, and then tells those who
// were granted. A test compares it with the lock record.
//
// KEYS[i] is the lock of command ARGV[kFairHead + i]; see fair_strategy.cc for how
// commands and outcomes are packed. A lock that nobody uses has no key, unless
// its tokens have run ahead of the clock.
//   ARGV[1]  now in microseconds; empty: TIME
//   ARGV[2]  who asks, for people
//   ARGV[3]  the channel of a session is this and its id
// A lock is {last token, limit, holders, queue} in MessagePack;
//   holder {id, session, mode, permits, token, ttl, since, expires, state, who}
//     state: 0; 1 revoked; 2 upgrading
//   waiter {id, session, mode, permits, ttl, window, since, expires, who}
// With one holder and no queue, as most are, it is shorter: an S, the holder's
// first four and the limit as an Acquire has them, then token, ttl, since,
// expires, who. What concerns only those is done without building tables, and
// the functions for the rest are not even made: a script makes all its
// functions anew in every call.
inline constexpr int kFairHead = 3;
inline constexpr std::string_view kFairScript = R"lua(
local call, pcall_, pack, unpack_ = redis.call, redis.pcall, struct.pack, struct.unpack
local sub, ceil, max, min = string.sub, math.ceil, math.max, math.min
local STRIDE, MAX_CLOCK = 64, 4503599627370496

local now = tonumber(ARGV[1])
local tested = now ~= nil
if not tested then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
local floor = max(min(now, MAX_CLOCK), 1)
local who = ARGV[2]
local KEEP = STRIDE - 1  -- last token = token + KEEP

local function put(key, value, last)
  if tested then return pcall_('SET', key, value) end
  return pcall_('SET', key, value, 'PX', ceil((last - now) / 1000) + 2)
end

-- All that is not simple.
local function general()

local GRANTED, QUEUED, BUSY, RENEWED, RELEASED, DONE, NOT_HELD, REVOKED, REFUSED, FAILED =
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9
local MAX_TOKEN, LEAD = 9007199254740991, 1000000
local NEVER = 9007199254740991

local lock, holders, queue, wakes  -- those of the command at work

local function touch() lock.dirty = true end

local function take_token()
  local token = max(lock[1] + 1, floor)
  if token > MAX_TOKEN - KEEP or token > now + LEAD then return nil end
  lock[1] = token + KEEP
  touch()
  return token
end

local function fits(mode, permits)
  if #holders == 0 then return mode ~= 2 or permits <= lock[2] end
  local out = permits
  for i = 1, #holders do
    local h = holders[i]
    if h[9] ~= 0 then return false end
    out = out + h[4]
  end
  if mode == 0 then return false end
  if mode == 1 then return holders[1][3] == 1 end
  return out <= lock[2]
end

-- The last reader, if it waits to be the writer.
local function finish_upgrade()
  local h = holders[1]
  if not h or h[9] ~= 2 or holders[2] then return false end
  local token = take_token()
  if not token then return false end
  h[3], h[5], h[9] = 0, token, 0
  wakes[#wakes + 1] = {h[2], h[1], token}
  return true
end

-- Grants in order and stops at the first that does not fit.
local function promote()
  finish_upgrade()
  while queue[1] and fits(queue[1][3], queue[1][4]) do
    local token = take_token()
    if not token then break end
    local w = table.remove(queue, 1)
    holders[#holders + 1] =
      {w[1], w[2], w[3], w[4], token, w[5], now, now + min(w[5], w[6]), 0, w[9]}
    wakes[#wakes + 1] = {w[2], w[1], token}
  end
end

-- What is not to be kept goes; the order stays.
local function sweep(list, gone)
  local kept = 0
  for i = 1, #list do
    local each = list[i]
    if gone(each) then
      touch()
    else
      kept = kept + 1
      list[kept] = each
    end
  end
  local removed = #list - kept
  for i = #list, kept + 1, -1 do list[i] = nil end
  return removed
end

local function expired(party) return party[8] <= now end

local function forget_limit_if_idle()
  if not holders[1] and not queue[1] and lock[2] ~= 0 then
    lock[2] = 0
    touch()
  end
end

local function settle()
  if holders[1] then
    sweep(holders, expired)
    finish_upgrade()
  end
  if queue[1] then
    sweep(queue, expired)
    promote()
  end
  forget_limit_if_idle()
end

local function find(list, id)
  for i = 1, #list do
    if list[i][1] == id then return list[i], i end
  end
end

-- status, gave back, ahead, count, token, lease for, look again
local function outcome(status, token, lease, ahead, look, count)
  return {status, 0, ahead or 0, count or 0, token or 0, lease or 0, look or 0}
end

local function held(status, h) return outcome(status, h[5], h[8] - now) end

local function queued(waiter)
  local soonest, ahead = NEVER, 0
  for i = 1, #holders do soonest = min(soonest, holders[i][8]) end
  for i = 1, #queue do
    if queue[i][1] == waiter[1] then break end
    soonest = min(soonest, queue[i][8])
    ahead = ahead + 1
  end
  return outcome(QUEUED, 0, 0, ahead, soonest - now)
end

local function remove(id)
  local function same(party) return party[1] == id end
  return sweep(holders, same) + sweep(queue, same) > 0
end

local function beat(waiter)
  waiter[8] = now + waiter[6]
  touch()
end

local function acquire(id, session, mode, permits, limit, ttl, window, flags)
  local h = find(holders, id)
  if h then return held(h[9] == 1 and REVOKED or GRANTED, h) end
  local w = find(queue, id)
  if w then
    beat(w)
    return queued(w)
  end
  if not holders[1] and not queue[1] then
    lock[2] = limit
  elseif lock[2] ~= limit then
    return outcome(REFUSED, 0, 0, 0, 0, lock[2])
  end
  local may_wait, may_barge = flags % 2 == 1, flags >= 2
  if (may_barge or not queue[1]) and fits(mode, permits) then
    local token = take_token()
    if not token then return outcome(FAILED) end
    h = {id, session, mode, permits, token, ttl, now, now + ttl, 0, who}
    holders[#holders + 1] = h
    return held(GRANTED, h)
  end
  if not may_wait then return outcome(BUSY) end
  w = {id, session, mode, permits, ttl, window, now, now + window, who}
  queue[#queue + 1] = w
  touch()
  return queued(w)
end

-- Each gives its outcome and the requests that it concerns.
local on = {}

function on.A(words)
  local id, session, mode, permits, limit, ttl, window, flags =
    unpack_('<c16c16BI4I4ddB', words, 2)
  return acquire(id, session, mode, permits, limit, ttl, window, flags), id
end

function on.N(words)
  local id = words:sub(2)
  local h = find(holders, id)
  if not h then return outcome(NOT_HELD), id end
  if h[9] == 1 then return held(REVOKED, h), id end
  h[8] = now + h[6]
  touch()
  return held(RENEWED, h), id
end

local function look(id, heartbeat)
  local h = find(holders, id)
  if h then return held(h[9] == 1 and REVOKED or GRANTED, h), id end
  local w = find(queue, id)
  if not w then return outcome(NOT_HELD), id end
  if heartbeat then beat(w) end
  return queued(w), id
end

function on.P(words) return look(words:sub(2), false) end
function on.H(words) return look(words:sub(2), true) end

function on.R(words)
  local id = words:sub(2)
  if not remove(id) then return outcome(NOT_HELD), id end
  promote()
  return outcome(RELEASED), id
end

function on.Q(words)
  local old, id, session, mode, permits, limit, ttl, window, flags =
    unpack_('<c16c16c16BI4I4ddB', words, 2)
  local gave_back = remove(old)
  if gave_back then promote() end
  local result = acquire(id, session, mode, permits, limit, ttl, window, flags)
  result[2] = gave_back and 1 or 0
  return result, id, old
end

function on.V(words)
  local count = #holders
  for i = 1, count do
    local h = holders[i]
    h[9] = 1
    for j = #wakes, 1, -1 do
      if wakes[j][2] == h[1] then table.remove(wakes, j) end
    end
    wakes[#wakes + 1] = {h[2], h[1], 0}
    touch()
  end
  if words:sub(2) == '!' then
    sweep(holders, function() return true end)
    promote()
  end
  return outcome(DONE, 0, 0, 0, 0, count)
end

function on.Z(words)
  if not holders[1] and not queue[1] then return outcome(NOT_HELD) end
  if lock[2] == 0 then return outcome(REFUSED) end
  local limit = tonumber(words:sub(2))
  lock[2] = limit
  touch()
  sweep(queue, function(w)
    if w[4] <= limit then return false end
    wakes[#wakes + 1] = {w[2], w[1], 0}
    return true
  end)
  promote()
  return outcome(DONE, 0, 0, 0, 0, limit)
end

function on.U(words)
  local id, may_wait = words:sub(2, 17), words:sub(18) == '1'
  local h = find(holders, id)
  if not h then return outcome(NOT_HELD), id end
  if h[9] == 1 then return held(REVOKED, h), id end
  if h[3] == 2 then return outcome(REFUSED, 0, 0, 0, 0, lock[2]), id end
  if h[3] == 0 then return held(GRANTED, h), id end
  local another, soonest = false, NEVER
  for i = 1, #holders do
    local other = holders[i]
    if other ~= h then
      another = another or other[9] == 2
      soonest = min(soonest, other[8])
    end
  end
  if another or (holders[2] and not may_wait) then
    if h[9] == 2 then
      h[9] = 0
      touch()
      promote()
    end
    return outcome(BUSY), id
  end
  h[9] = 2
  touch()
  if holders[2] then return outcome(QUEUED, 0, 0, 0, soonest - now), id end
  if not finish_upgrade() then
    h[9] = 0
    return outcome(FAILED), id
  end
  h[8] = now + h[6]
  return held(GRANTED, h), id
end

function on.D(words)
  local id = words:sub(2)
  local h = find(holders, id)
  if not h then return outcome(NOT_HELD), id end
  if h[9] == 1 then return held(REVOKED, h), id end
  if h[3] == 2 then return outcome(REFUSED, 0, 0, 0, 0, lock[2]), id end
  h[3], h[9] = 1, 0
  touch()
  local result = held(GRANTED, h)
  promote()
  return result, id
end

function on.T(words)
  local old, id, session, mode, permits, limit, ttl =
    unpack_('<c16c16c16BI4I4d', words, 2)
  local h = find(holders, id)
  if h then return held(h[9] == 1 and REVOKED or GRANTED, h), id end
  if find(queue, id) then return outcome(BUSY), id end
  h = find(holders, old)
  if not h or h[9] == 1 then return outcome(NOT_HELD), id end
  local token = take_token()
  if not token then return outcome(FAILED), id end
  h[1], h[2], h[5], h[6], h[7], h[8], h[9], h[10] =
    id, session, token, ttl, now, now + ttl, 0, who
  local result = held(GRANTED, h)
  promote()
  return result, id, old
end

local function load(key)
  local stored, found = call('GET', key), nil
  if not stored then
    found = {0, 0, {}, {}}
  elseif sub(stored, 1, 1) == 'S' then
    local id, session, mode, permits, limit, token, ttl, since, expires =
      unpack_('<c16c16BI4I4dddd', stored, 2)
    local h = {id, session, mode, permits, token, ttl, since, expires, 0, sub(stored, 75)}
    found = {token + KEEP, limit, {h}, {}}
  else
    found = cmsgpack.unpack(stored)
  end
  found.key, found.stored, found.wakes = key, stored, {}
  return found
end

local function packed(it)
  local h = it[3][1]
  if h and not it[3][2] and not it[4][1] and h[9] == 0 and it[1] == h[5] + KEEP then
    return pack('<c1c16c16BI4I4dddd', 'S', h[1], h[2], h[3], h[4], it[2], h[5], h[6], h[7], h[8])
      .. h[10]
  end
  return cmsgpack.pack({it[1], it[2], it[3], it[4]})
end

local locks, order = {}, {}

local function apply(key, words)
  lock = locks[key]
  if not lock then
    lock = load(key)
    locks[key] = lock
    order[#order + 1] = lock
  end
  holders, queue, wakes = lock[3], lock[4], lock.wakes
  settle()
  local o, id, other = on[sub(words, 1, 1)](words)
  forget_limit_if_idle()
  for j = #wakes, 1, -1 do
    local about = wakes[j][2]
    if about == id or about == other then table.remove(wakes, j) end
  end
  return pack('<BBI4I4ddd', o[1], o[2], o[3], o[4], o[5], o[6], o[7])
end

-- An error of Redis, if it refuses.
local function store(it)
  if not it.dirty or (it[1] == 0 and not it.stored) then return nil end
  local last = it[1]
  for list = 3, 4 do
    for i = 1, #it[list] do last = max(last, it[list][i][8]) end
  end
  local result
  if last < now then
    result = it.stored and pcall_('DEL', it.key)
  else
    result = put(it.key, packed(it), last)
  end
  return type(result) == 'table' and result.err or nil
end

local function finish(refused)
  for i = 1, #order do
    local it = order[i]
    local err = store(it)
    if err then
      refused[it.key] = err
    else
      for j = 1, #it.wakes do
        local wake = it.wakes[j]
        call('PUBLISH', ARGV[3] .. wake[1], wake[2] .. string.format('%.0f', wake[3]))
      end
    end
  end
end

return {apply = apply, finish = finish, has = locks}

end  -- of general()

local rest  -- general(), once it is needed
local refused, any_refused = {}, false
local outcomes = {}

local GRANT = '<BBI4I4ddd'
local RELEASED_ALONE = pack('<BBI4I4ddd', 4, 0, 0, 0, 0, 0, 0)

for i = 1, #KEYS do
  local key, words = KEYS[i], ARGV[3 + i]
  local letter, done, result = sub(words, 1, 1), nil, nil
  if refused[key] then
    done = RELEASED_ALONE  -- whatever: the refusal counts
  elseif rest and rest.has[key] then
    done = nil
  elseif letter == 'A' then
    local ttl = unpack_('<d', words, 43)
    local expires = now + ttl
    local value = 'S' .. sub(words, 2, 42) .. pack('<dddd', floor, ttl, now, expires) .. who
    if tested then
      result = pcall_('SET', key, value, 'NX')
    else
      result = pcall_('SET', key, value, 'NX', 'PX', ceil(max(ttl, KEEP) / 1000) + 2)
    end
    if result then done = pack(GRANT, 0, 0, 0, 0, floor, ttl, 0) end
  elseif letter == 'R' or letter == 'N' then
    local stored = call('GET', key)
    if stored and sub(stored, 2, 17) == sub(words, 2) and sub(stored, 1, 1) == 'S' then
      local token, ttl, since, expires = unpack_('<dddd', stored, 43)
      if expires <= now then
        done = nil
      elseif letter == 'N' then
        expires = now + ttl
        result = put(key, sub(stored, 1, 66) .. pack('<d', expires) .. sub(stored, 75),
                     max(expires, token + KEEP))
        done = pack(GRANT, 3, 0, 0, 0, token, ttl, 0)
      else
        -- Idle; its token must be remembered until the clock is past it.
        local last = token + KEEP
        result = last < now and pcall_('DEL', key)
          or put(key, cmsgpack.pack({last, 0, {}, {}}), last)
        done = RELEASED_ALONE
      end
    end
  end
  if done and type(result) == 'table' and result.err then
    refused[key] = result.err
    any_refused = true
  elseif not done then
    rest = rest or general()
    done = rest.apply(key, words)
  end
  outcomes[i] = done
end
if rest then
  rest.finish(refused)
  any_refused = any_refused or next(refused) ~= nil
end

local reply = {table.concat(outcomes)}
if any_refused then
  for i = 1, #KEYS do reply[1 + i] = refused[KEYS[i]] or '' end
end
return reply
)lua";

// For people: the locks as they are stored, each with the time. KEYS are locks.
inline constexpr std::string_view kFairLook = R"lua(
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local reply = {now}
for i = 1, #KEYS do
  local stored = redis.call('GET', KEYS[i])
  if stored and string.sub(stored, 1, 1) == 'S' then
    local id, session, mode, permits, limit, token, ttl, since, expires =
      struct.unpack('<c16c16BI4I4dddd', stored, 2)
    reply[1 + i] = {token, limit,
      {{id, session, mode, permits, token, ttl, since, expires, 0, string.sub(stored, 75)}}, {}}
  else
    reply[1 + i] = stored and cmsgpack.unpack(stored) or {}
  end
end
return reply
)lua";

}  // namespace holdfast::engines
