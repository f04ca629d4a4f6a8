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
// A lock is {last token, limit, holders, queue};
//   holder {id, session, mode, permits, token, ttl, since, expires, revoked, who}
//   waiter {id, session, mode, permits, ttl, window, since, expires, who}
inline constexpr int kFairHead = 3;
inline constexpr std::string_view kFairScript = R"lua(
local call, pcall_, pack, unpack_ = redis.call, redis.pcall, struct.pack, struct.unpack
local max, min = math.max, math.min
local GRANTED, QUEUED, BUSY, RENEWED, RELEASED, DONE, NOT_HELD, REVOKED, REFUSED, FAILED =
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9
local STRIDE, MAX_TOKEN, MAX_CLOCK, LEAD = 64, 9007199254740991, 4503599627370496, 1000000
local NEVER = 9007199254740991

local now = tonumber(ARGV[1])
local tested = now ~= nil
if not tested then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
local floor = min(now, MAX_CLOCK)
local who = ARGV[2]

local lock, holders, queue, wakes  -- those of the command at work

local function touch() lock.dirty = true end

local function take_token()
  local token = max(lock[1] + 1, floor, 1)
  if token > MAX_TOKEN - (STRIDE - 1) or token > now + LEAD then return nil end
  lock[1] = token + STRIDE - 1
  touch()
  return token
end

local function fits(mode, permits)
  if #holders == 0 then return mode ~= 2 or permits <= lock[2] end
  local out = permits
  for i = 1, #holders do
    local h = holders[i]
    if h[9] == 1 then return false end
    out = out + h[4]
  end
  if mode == 0 then return false end
  if mode == 1 then return holders[1][3] == 1 end
  return out <= lock[2]
end

-- Grants in order and stops at the first that does not fit.
local function promote()
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
  if holders[1] then sweep(holders, expired) end
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

local function load(key)
  local stored = call('GET', key)
  local found = stored and cmsgpack.unpack(stored) or {0, 0, {}, {}}
  found.key, found.stored, found.wakes = key, stored, {}
  return found
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
    local text = cmsgpack.pack({it[1], it[2], it[3], it[4]})
    if tested then
      result = pcall_('SET', it.key, text)
    else
      result = pcall_('SET', it.key, text, 'PX', string.format('%.0f', (last - now) / 1000 + 2))
    end
  end
  return type(result) == 'table' and result.err or nil
end

local locks, order, outcomes = {}, {}, {}
for i = 1, #KEYS do
  local key, words = KEYS[i], ARGV[3 + i]
  lock = locks[key]
  if not lock then
    lock = load(key)
    locks[key] = lock
    order[#order + 1] = lock
  end
  holders, queue, wakes = lock[3], lock[4], lock.wakes
  settle()
  local result, id, other = on[words:sub(1, 1)](words)
  forget_limit_if_idle()
  for j = #wakes, 1, -1 do
    local about = wakes[j][2]
    if about == id or about == other then table.remove(wakes, j) end
  end
  outcomes[i] = result
end

local errors
for i = 1, #order do
  local it = order[i]
  it.error = store(it)
  if it.error then
    errors = true
  else
    for j = 1, #it.wakes do
      local wake = it.wakes[j]
      call('PUBLISH', ARGV[3] .. wake[1], wake[2] .. string.format('%.0f', wake[3]))
    end
  end
end

local reply = {''}
for i = 1, #outcomes do
  local o = outcomes[i]
  outcomes[i] = pack('<BBI4I4ddd', o[1], o[2], o[3], o[4], o[5], o[6], o[7])
  if errors then reply[1 + i] = locks[KEYS[i]].error or '' end
end
reply[1] = table.concat(outcomes)
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
  reply[1 + i] = stored and cmsgpack.unpack(stored) or {}
end
return reply
)lua";

}  // namespace holdfast::engines
