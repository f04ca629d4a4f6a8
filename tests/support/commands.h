#pragma once

#include <chrono>
#include <cstdint>

#include "core/commands.h"

// Short ways to write commands in tests.
namespace holdfast::test {

using namespace std::chrono_literals;

// Ids by number, of this process alone: tests that run at once share servers, and
// some of those tell a session by its id whatever the table.
inline const base::Id kOfThisProcess = base::Id::random();
inline base::Id id(std::uint32_t number) {
  base::Id made = kOfThisProcess;
  for (unsigned i = 0; i < 4; ++i) {
    made.bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
  }
  return made;
}

// A moment of the test's own clock.
constexpr base::Time at(base::Duration since_start) {
  return base::Time{std::chrono::hours{1} + since_start};
}

inline constexpr core::Shape kShared{.mode = Mode::shared};
constexpr core::Shape permits(std::uint32_t count, std::uint32_t limit) {
  return {.mode = Mode::permits, .permits = count, .limit = limit};
}

// ttl 30 s, window 20 s; the session has the request's number.
inline core::Acquire acquire(std::uint32_t number, core::Shape shape = {}) {
  return {.id = id(number), .session = id(number), .shape = shape, .ttl = 30s, .window = 20s};
}
inline core::Acquire try_acquire(std::uint32_t number, core::Shape shape = {}) {
  core::Acquire made = acquire(number, shape);
  made.queue = false;
  return made;
}
inline core::Acquire barge(std::uint32_t number, core::Shape shape = {}) {
  core::Acquire made = acquire(number, shape);
  made.barge = true;
  return made;
}
inline core::Renew renew(std::uint32_t number) {
  return {.id = id(number)};
}
inline core::Poll poll(std::uint32_t number) {
  return {.id = id(number)};
}
inline core::Poll heartbeat(std::uint32_t number) {
  return {.id = id(number), .heartbeat = true};
}
inline core::Release release(std::uint32_t number) {
  return {.id = id(number)};
}

inline core::Upgrade upgrade(std::uint32_t number) {
  return {.id = id(number)};
}
inline core::Downgrade downgrade(std::uint32_t number) {
  return {.id = id(number)};
}
inline core::Transfer transfer(std::uint32_t from, std::uint32_t to) {
  return {.id = id(from), .next = acquire(to)};
}

}  // namespace holdfast::test
