#pragma once

#include <holdfast/error.h>
#include <holdfast/options.h>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/ids.h"
#include "base/time.h"

// What a client can ask of one lock, and what it can be told: the language
// spoken between client and engines, and by the lock record that defines it.
namespace holdfast::core {

using base::Duration;
using base::Time;
using RequestId = base::Id;  // one request; knowing it is the right to renew and release
using SessionId = base::Id;  // one client; where its doorbell is

// A grant's token is the first of a block of this many; the rest of the block
// numbers the hand-overs inside the holder's process.
inline constexpr std::uint64_t kTokenStride = 64;
static_assert(kTokenStride > kMaxHandOver);
// Doubles (Lua, JSON) are exact up to here.
inline constexpr std::uint64_t kMaxToken = (std::uint64_t{1} << 53U) - 1;

struct Shape {
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;  // Mode::permits: how many ...
  std::uint32_t limit = 0;    // ... of how many; else 0
  friend bool operator==(const Shape&, const Shape&) = default;
};

// Idempotent: asked again with an id that holds or waits, it answers with what
// the id has (and counts as a waiter's heartbeat).
struct Acquire {
  RequestId id;
  SessionId session;
  Shape shape;
  Duration ttl{};
  // How long a waiter lives after each heartbeat, and how long a grant that is
  // pushed to a waiter lasts before its first renewal.
  Duration window{};
  bool queue = true;   // false: busy instead of waiting
  bool barge = false;  // may overtake the queue
  friend bool operator==(const Acquire&, const Acquire&) = default;
};

// Never revives an expired lease.
struct Renew {
  RequestId id;
};

// How does my request stand? With `heartbeat` it also keeps a waiter alive.
// Never prolongs a grant.
struct Poll {
  RequestId id;
  bool heartbeat = false;
};

// Ends whatever the id has: a grant or a place in the queue.
struct Release {
  RequestId id;
};

// Release and Acquire as one step: nobody sees the lock free in between, and
// the new request lines up behind those who waited.
struct Requeue {
  RequestId id;
  Acquire next;
};

// `holdfast release --force`.
struct Revoke {
  bool now = false;
};

// Another total for a semaphore in use.
struct Resize {
  std::uint32_t limit = 0;
};

// A reader becomes the writer without letting go in between, before all who
// wait. Granted with a new token as soon as it is the only reader; till then
// nobody else is let in. Busy if another reader waits for the same: one of the
// two has to give way. Idempotent; asked again, it answers how it stands.
struct Upgrade {
  RequestId id;
  bool queue = true;  // false: busy instead of waiting for the other readers
};

// A writer becomes a reader and keeps its token; an Upgrade that waits is
// taken back. Nothing else changes for a reader.
struct Downgrade {
  RequestId id;
};

// The grant of `id` passes to another request as it is, before all who wait,
// with a new token. `next` gives id, session and ttl; the shape stays. Busy if
// `next` itself waits in the queue.
struct Transfer {
  RequestId id;
  Acquire next;
};

using Operation = std::variant<Acquire, Renew, Poll, Release, Requeue, Revoke, Resize, Upgrade,
                               Downgrade, Transfer>;

struct Command {
  std::string name;
  Operation operation;
};

enum class Status : std::uint8_t {
  granted,   // Acquire, Poll, Requeue, Upgrade, Downgrade, Transfer: token, lease_for
  queued,    // Acquire, Poll, Requeue: ahead, look_again; Upgrade: look_again
  busy,      // Acquire without queue; Upgrade, Transfer
  renewed,   // token, lease_for
  released,  // Release
  done,      // Revoke: count; Resize
  not_held,  // all with an id: it has nothing here
  revoked,   // Renew, Poll, Acquire, Upgrade, Downgrade: held, but may only be released
  refused,   // in use with the total `count` (0: not a semaphore), which does not fit
  failed,    // error: nothing is known but what the code says
};

struct Outcome {
  Status status = Status::failed;
  std::uint64_t token = 0;
  // What is left of the grant by the store's clock when it answered: counted
  // from before the request was sent, it is always on the safe side.
  Duration lease_for{};
  // When something ahead of a waiter ends by itself, if nobody acts before.
  Duration look_again{};
  std::uint32_t ahead = 0;  // waiters in front
  std::uint32_t count = 0;
  bool gave_back = false;  // Requeue, unless failed: the id had something to release
  std::optional<Error> error = std::nullopt;
};

}  // namespace holdfast::core
