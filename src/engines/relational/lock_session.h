#pragma once

#include <holdfast/error.h>
#include <holdfast/inspect.h>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/commands.h"
#include "engine/talk.h"

// What SessionLocks asks of a database whose own locks it uses.
namespace holdfast::engines::relational {

// What is to be locked.
struct Wanted {
  std::string key;        // the name as printable ASCII
  std::int64_t hash = 0;  // of the name, where the server's locks are numbers
  bool shared = false;
};

// Which connection it is, provably: its number may be another's after a
// restart, but a random lock of its own, the beacon, is held by it alone.
struct Identity {
  std::int64_t connection = 0;
  std::int64_t beacon = 0;
};

// One connection that can hold one lock. Any error ends it, and with it
// whatever it holds.
class LockSession {
 public:
  enum class Got : std::uint8_t {
    lock,
    nothing,  // somebody else has it, or the wait was ended
    no_row,   // there is nothing to lock yet: Books::know() makes it
  };

  virtual ~LockSession() = default;
  LockSession() = default;
  LockSession(const LockSession&) = delete;
  LockSession& operator=(const LockSession&) = delete;

  virtual engine::Talk<Result<void>> connect() = 0;  // and lights the beacon
  virtual bool is_open() = 0;                        // as far as one can tell without asking
  virtual int fd() const = 0;
  virtual void close() = 0;
  virtual Identity identity() const = 0;

  virtual engine::Talk<Result<Got>> try_lock(Wanted wanted) = 0;
  // Until it has the lock, is interrupted, or has waited for a while.
  virtual engine::Talk<Result<Got>> await_lock(Wanted wanted) = 0;
  // Also where a wait may have got it unawares.
  virtual engine::Talk<Result<void>> free(Wanted wanted) = 0;
};

// Who holds or waits, as people are told; and what one connection can ask
// about others.
class Books {
 public:
  struct Note {
    core::RequestId request;
    Wanted wanted;
    bool waiting = false;
    base::Duration ttl{};
    Identity session;
  };
  struct Standing {
    bool alive = false;  // the server still has the session
    bool revoked = false;
  };

  virtual ~Books() = default;
  Books() = default;
  Books(const Books&) = delete;
  Books& operator=(const Books&) = delete;

  // `unsupported` if this server's session locks would not exclude anybody.
  virtual engine::Talk<Result<void>> admit() = 0;
  // Sees to it that there is something to lock; fills in the hash.
  virtual engine::Talk<Result<Wanted>> know(Wanted wanted) = 0;
  virtual engine::Talk<Result<void>> write(Note note) = 0;
  virtual engine::Talk<Result<void>> strike(std::vector<core::RequestId> requests) = 0;
  // One each, in one round trip.
  virtual engine::Talk<Result<std::vector<Standing>>> look(
      std::vector<std::pair<core::RequestId, Identity>> holds) = 0;
  virtual engine::Talk<Result<bool>> is_revoked(std::string key) = 0;  // a holder of it
  // Ends what the session waits for; not the session.
  virtual engine::Talk<Result<void>> interrupt(Identity session) = 0;
  // How many holders there were. `now`: ends their sessions.
  virtual engine::Talk<Result<std::uint32_t>> revoke(std::string key, core::Revoke how) = 0;

  virtual engine::Talk<Result<std::vector<LockInfo>>> find(std::string prefix) = 0;
  virtual engine::Talk<Result<void>> create() = 0;
  virtual engine::Talk<Result<void>> tidy() = 0;
  virtual engine::Talk<std::vector<Finding>> examine() = 0;
};

class SessionStore {
 public:
  virtual ~SessionStore() = default;
  SessionStore() = default;
  SessionStore(const SessionStore&) = delete;
  SessionStore& operator=(const SessionStore&) = delete;

  virtual std::unique_ptr<LockSession> session() = 0;
  virtual std::unique_ptr<Books> books() = 0;  // on a connection of its own
  virtual std::string script() const = 0;
};

}  // namespace holdfast::engines::relational
