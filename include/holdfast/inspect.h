#pragma once

#include <holdfast/options.h>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

// Who a holder or waiter says it is. For people; proves nothing.
struct Party {
  std::string label;
  std::string host;
  std::int64_t pid = 0;
};

struct HolderInfo {
  Party party;
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
  std::optional<std::uint64_t> token;
  Duration held_for{};
  Duration expires_in{};
  bool revoked = false;
};

struct WaiterInfo {
  Party party;
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
  Duration waiting_for{};
};

// One lock as the store sees it at one moment.
struct LockInfo {
  std::string name;
  std::uint32_t limit = 0;  // total permits of a semaphore in use; else 0
  std::vector<HolderInfo> holders;
  std::vector<WaiterInfo> queue;  // first in line first
};

// What an engine promises; docs/engines/README.md has the same table.
enum class ExclusionBy : std::uint8_t { store, session, quorum };
enum class TokenKind : std::uint8_t { none, rising, row_id, within_skew };
enum class WakeUp : std::uint8_t { event, retry, event_herd, retry_with_hints };
enum class LossSignal : std::uint8_t { yes, best_effort };

struct Capabilities {
  std::string engine;    // "sqlite"
  std::string strategy;  // "" where there is only one
  ExclusionBy exclusion = ExclusionBy::store;
  bool lease = true;  // a ttl of the caller's choice
  TokenKind token = TokenKind::rising;
  bool fifo = true;
  WakeUp wake_up = WakeUp::event;
  bool shared = true;
  bool permits = true;
  LossSignal loss_signal = LossSignal::yes;
  bool values = false;  // versioned values and tasks
  std::string clock;    // whose clock decides expiry
  Duration min_ttl = kMinTtl;
  Duration max_ttl = kMaxTtl;
};

std::string_view to_string(Mode mode) noexcept;
std::string_view to_string(ExclusionBy value) noexcept;
std::string_view to_string(TokenKind value) noexcept;
std::string_view to_string(WakeUp value) noexcept;
std::string_view to_string(LossSignal value) noexcept;

// One line of `holdfast doctor`.
struct Finding {
  enum class Level : std::uint8_t { ok, warning, problem };
  Level level = Level::ok;
  std::string topic;
  std::string text;
  std::string advice;  // empty when there is nothing to do
};

// How a revoked lock comes free.
enum class Force : std::uint8_t {
  revoke,  // no renewal, no new grant until the holder lets go or its lease ends
  now,     // free at once: holders may overlap
};

}  // namespace holdfast
