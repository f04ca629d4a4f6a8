#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "core/lock_record.h"
#include "engine/engine.h"
#include "engine/talk.h"
#include "engines/postgres/postgres_session.h"
#include "engines/postgres/postgres_shared.h"

namespace holdfast::engines::postgres {

// The connection on which this process hears, by NOTIFY, that it has been
// granted a lock. Opened by the first who waits. Thread-safe.
class Doorbell {
 public:
  explicit Doorbell(const Shared& shared);

  // Readable when there is something to answer; the same for ever, though
  // connections come and go.
  int fd() const noexcept { return epoll_.get(); }
  std::vector<engine::Ring> answer();
  // False if nobody can have rung unheard since the last call.
  bool may_have_missed();
  bool is_settled();  // it listens, or never will

  // This request holds the lock `key`. Who is revoked before anybody listens is
  // rung for as soon as somebody does.
  void holds(std::string_view key, const core::RequestId& id);
  // It is about to be given back: that it holds nothing is then no news. And how
  // that ended: if nobody knows, it may still be revoked.
  void gives_back(const core::RequestId& id);
  void gave_back(const core::RequestId& id);
  void may_still_hold(const core::RequestId& id);

  // Sees to it that it listens soon, on the driver's thread, if that is possible: behind a pooler
  // it is not, and waiters look now and then instead.
  void hang(engine::Driver& driver);
  // Until that is settled; but who has other things to do waits no longer for a connection that is
  // not made than most take.
  engine::Talk<bool> await_settled();

  static std::string channel_of(const core::SessionId& session);
  static std::string payload_of(const core::Wake& wake);

 private:
  enum class State : std::uint8_t { silent, connecting, listening, impossible };

  struct Unheard {
    std::string key;
    core::RequestId id;
  };

  bool is_deaf() const noexcept;
  engine::Talk<bool> listen();
  engine::Talk<bool> look_after_the_unheard();
  void look();
  void look_and_tell();

  const Shared& shared_;
  const std::string listen_;
  base::FileDescriptor epoll_;
  base::FileDescriptor unread_;  // readable while rings_ waits to be answered
  std::mutex mutex_;
  State state_ = State::silent;
  bool hanging_ = false;  // talk_ runs
  base::Time connecting_since_{};
  int looks_ = 0;  // since it listens
  std::vector<engine::Ring> rings_;
  std::vector<Unheard> unheard_;  // who holds while nobody listens
  std::vector<Unheard> leaving_;  // those of them that are being given back
  Session session_;
  base::FileDescriptor watched_;  // its socket
  engine::TalkConversation<bool> talk_;
};

}  // namespace holdfast::engines::postgres
