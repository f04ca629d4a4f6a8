#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

namespace holdfast {

using Duration = std::chrono::nanoseconds;

// All defaults of the library stand here and in docs/api.md.
inline constexpr Duration kDefaultTtl = std::chrono::seconds{30};
inline constexpr Duration kMinTtl = std::chrono::milliseconds{20};
inline constexpr Duration kMaxTtl = std::chrono::hours{24 * 7};
inline constexpr std::uint32_t kDefaultHandOver = 32;
inline constexpr std::uint32_t kMaxHandOver = 63;
inline constexpr Duration kHandOverTime = std::chrono::milliseconds{50};
inline constexpr int kRefreshesPerTtl = 3;  // renewals of a lease, heartbeats of a waiter
inline constexpr int kGracesPerTtl = 5;     // grace = ttl / 5
inline constexpr Duration kBackstopPoll = std::chrono::seconds{1};
inline constexpr Duration kSpin = std::chrono::microseconds{300};
inline constexpr Duration kMaxSpin = std::chrono::milliseconds{10};
// A lease is trusted 1 % + 2 ms less long than the store keeps it.
inline constexpr int kDriftDivisor = 100;
inline constexpr Duration kFixedDrift = std::chrono::milliseconds{2};
// How long an unanswered request is repeated before the caller hears of it.
inline constexpr Duration kPatience = std::chrono::seconds{5};
inline constexpr Duration kDrainTime = std::chrono::seconds{1};  // ~Client waits for releases
inline constexpr Duration kTidyInterval = std::chrono::seconds{30};
inline constexpr std::size_t kMaxNameBytes = 255;
inline constexpr std::uint32_t kMaxPermits = 1'000'000;
// Callers of one client that may wait for one name; the next is turned away as `busy`.
inline constexpr std::size_t kMaxWaiters = 100'000;

enum class Mode : std::uint8_t { exclusive, shared, permits };

// An identity for re-entrancy: acquires of one name by the same Owner nest
// instead of waiting for each other. Copies are the same owner.
class Owner {
 public:
  static Owner make();
  friend bool operator==(const Owner&, const Owner&) = default;
  std::uint64_t id() const noexcept { return id_; }

 private:
  explicit Owner(std::uint64_t id) noexcept : id_{id} {}
  std::uint64_t id_;
};

struct AcquireOptions {
  // How long the store keeps the lock without hearing from us. Renewed every
  // ttl/3 in the background, so it bounds how long a crashed holder blocks
  // others, not how long the work may take.
  Duration ttl = kDefaultTtl;

  // How long to wait: empty for ever, zero not at all.
  std::optional<Duration> wait = std::nullopt;

  Mode mode = Mode::exclusive;

  // Mode::permits: how many of how many. The total is stored with the name;
  // another total is refused until the semaphore is idle or resized.
  std::uint32_t permits = 1;
  std::uint32_t of = 0;

  // false: the lease ends at ttl, whatever happens.
  bool renew = true;

  // Renewal stops after this long; the lease then runs out by itself.
  std::optional<Duration> max_hold = std::nullopt;

  // lost() fires this long before the local deadline if renewal does not
  // succeed. Empty: ttl/5.
  std::optional<Duration> grace = std::nullopt;

  // Asked before each renewal, on a thread of its own; `false`, an exception
  // or silence for longer than health_timeout stops the renewal.
  std::function<bool()> health_check = nullptr;
  Duration health_timeout = std::chrono::seconds{1};

  // false: may overtake the queue when the lock happens to be free.
  bool fair = true;

  // How often in a row the lock may pass between threads of this process
  // before other processes get their turn. 0: strict FIFO, always by the store.
  std::uint32_t hand_over = kDefaultHandOver;

  // Fail with `unsupported` if the engine has no fencing tokens.
  bool require_token = false;

  // Re-entrancy; see Owner.
  std::optional<Owner> owner = std::nullopt;

  // Ends the wait with `cancelled`.
  std::stop_token stop = {};
};

struct ClientOptions {
  // Shown to people by `holdfast ls`; the program's name if empty.
  std::string label;

  // How often to look for wake-ups that got lost.
  Duration backstop_poll = kBackstopPoll;

  // How long a caller at most looks for the store's answer before it sleeps: a store nearby
  // answers sooner than a sleeper wakes. Only where answers usually come within this time; it
  // costs the processor what it saves in time. 0: never.
  Duration spin = kSpin;
};

}  // namespace holdfast
