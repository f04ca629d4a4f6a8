#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "core/lock_record.h"
#include "engine/engine.h"
#include "engine/talk.h"
#include "engines/postgres/postgres_session.h"

namespace holdfast::engines::postgres {

// The connection on which this process hears, by NOTIFY, that it has been
// granted a lock. Opened by the first who waits. Thread-safe.
class Doorbell {
 public:
  Doorbell(const Options& options, const core::SessionId& session);

  // Readable when there is something to answer; the same for ever, though
  // connections come and go.
  int fd() const noexcept { return epoll_.get(); }
  std::vector<engine::Ring> answer();
  // False if nobody can have rung unheard since the last call.
  bool may_have_missed();
  bool is_settled();  // it listens, or never will
  bool is_silent();   // it does not, and nobody sees to it

  // This request holds a lock. If nobody listens yet, a ring may have been missed
  // when somebody does: then it is rung for.
  void granted(const core::RequestId& id);

  // Listens, if that is possible: behind a pooler it is not, and waiters look
  // now and then instead.
  engine::Talk<bool> listen();

  static std::string channel_of(const core::SessionId& session);
  static std::string payload_of(const core::Wake& wake);

 private:
  enum class State : std::uint8_t { silent, connecting, listening, impossible };

  bool begin_connecting();
  void look();
  void look_and_tell();

  const Options& options_;
  const std::string listen_;
  base::FileDescriptor epoll_;
  base::FileDescriptor unread_;  // readable while rings_ waits to be answered
  std::mutex mutex_;
  State state_ = State::silent;
  int looks_ = 0;  // since it listens
  std::vector<engine::Ring> rings_;
  std::vector<core::RequestId> unheard_;  // granted while nobody listened
  Session session_;
  base::FileDescriptor watched_;  // its socket
};

}  // namespace holdfast::engines::postgres
