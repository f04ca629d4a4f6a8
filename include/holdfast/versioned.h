#pragma once

#include <holdfast/error.h>
#include <holdfast/options.h>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace holdfast {

namespace client {
class Service;
}

inline constexpr std::size_t kMaxValueBytes = 64 * 1024;
inline constexpr std::uint32_t kDefaultRetries = 100;

// One version of a value.
struct VersionedValue {
  std::string value;
  std::uint64_t version = 0;
  // By the store's clock (on etcd, which has none, by the writer's). For people:
  // decide by versions.
  std::chrono::system_clock::time_point written;
};

// What became of one write. A conflict is no error.
struct WriteOutcome {
  bool stored = false;  // false: somebody else was faster, nothing was changed
  // Stored: the new version. Else the one that is there; 0 if there is none.
  std::uint64_t version = 0;
};

struct UpdateOptions {
  // How often to begin again after a conflict.
  std::uint32_t retries = kDefaultRetries;
  // Ends the retries with `cancelled`.
  std::stop_token stop = {};
};

enum class UpdateEnd : std::uint8_t {
  stored,     // the new value is there
  unchanged,  // the function gave no new value
  conflict,   // others were faster, `retries` times and once more
};

struct UpdateOutcome {
  UpdateEnd end = UpdateEnd::conflict;
  std::uint64_t version = 0;         // of `value`; 0 if there is none
  std::optional<std::string> value;  // what is there now; for a conflict: what was read last
  std::uint32_t conflicts = 0;       // how often others were faster
};

// A value that is changed by who read its latest version, without any lock:
// whoever comes second is told and reads again. Bytes, at most kMaxValueBytes.
//
// Versions of a name rise with every write and never come back, also when the
// value is erased and created again. Thread-safe; copies are the same value.
//
// All calls: invalid_argument, unsupported, unavailable (nothing was changed),
// outcome_unknown (no answer, and nothing that is in the store now tells
// whether the write was applied), unauthorized.
class Versioned {
 public:
  const std::string& name() const noexcept { return name_; }

  // Empty if there is none.
  Result<std::optional<VersionedValue>> read() const;

  // Only if there is none.
  Result<WriteOutcome> create(std::string_view value) const;
  // Only if this is still its version.
  Result<WriteOutcome> compare_and_set(std::string_view value, std::uint64_t expected) const;
  Result<WriteOutcome> erase(std::uint64_t expected) const;

  // Reads, asks `change` for the new value and writes it; begins again, after a
  // random while, if somebody else was faster. `change` gets nothing if there is
  // no value, may return nothing to leave all as it is, and must have no side
  // effects: it may be called often. What it throws is passed on.
  using Change = std::function<std::optional<std::string>(const std::optional<std::string>&)>;
  Result<UpdateOutcome> update(const Change& change, const UpdateOptions& options = {}) const;

 private:
  friend class Client;
  Versioned(std::shared_ptr<client::Service> service, std::string name);
  std::shared_ptr<client::Service> service_;
  std::string name_;
};

}  // namespace holdfast
