#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "proof/history.h"

namespace holdfast::proof {

struct Shape {
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
  std::uint32_t limit = 0;
};

// May two grants of these shapes not stand at the same time?
bool conflict(const Shape& a, const Shape& b) noexcept;

// Who holds one lock at one moment.
class Crowd {
 public:
  void add(const Shape& shape) { change(shape, 1); }
  void remove(const Shape& shape) { change(shape, -1); }
  bool fits() const noexcept;

 private:
  void change(const Shape& shape, int sign);
  int exclusive_ = 0;
  int shared_ = 0;
  std::int64_t permits_ = 0;
  std::uint32_t limit_ = 0;
};

// One acquire and what became of it, put together from its events. Indexes are
// places in the history.
struct Call {
  std::uint32_t process = 0;
  std::uint32_t thread = 0;
  std::uint32_t name = 0;
  std::uint32_t number = 0;
  Shape shape;
  Moment wait{};  // negative: for ever

  std::size_t called = 0;
  std::optional<std::size_t> answered = std::nullopt;  // granted or refused
  bool granted = false;
  ErrorCode code{};
  std::uint64_t token = 0;
  std::optional<std::size_t> releasing = std::nullopt;
  std::optional<std::size_t> released = std::nullopt;  // or unreleased
  bool release_succeeded = false;
  ErrorCode release_code{};
  std::optional<std::size_t> killed = std::nullopt;  // its process, before it let go
  bool cancelled = false;                            // its caller asked it to stop

  // The grant certainly stood from `answered` until here: the last look that
  // said so, before the release. Nothing: it may have been over when it came.
  std::optional<std::size_t> stood_until = std::nullopt;
  std::vector<std::size_t> events;  // all of them
};

// How often the answer to one call came again; such histories are broken (S5).
struct Calls {
  std::vector<Call> all;                    // by `called`
  std::vector<std::size_t> second_answers;  // events
};

Calls calls_of(const History& history);

}  // namespace holdfast::proof
