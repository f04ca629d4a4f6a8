#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "core/lock_record.h"
#include "engine/engine.h"
#include "engines/mysql/mysql_row.h"
#include "engines/mysql/mysql_session.h"
#include "engines/mysql/mysql_sql.h"

namespace holdfast::engines {

// A connection that sleeps in the server until somebody who granted us a lock,
// or revoked one, interrupts it, and then looks what happened. It is opened
// when something waits, or is held for a while. Thread-safe; nothing blocks.
class MysqlDoorbell {
 public:
  MysqlDoorbell(const MysqlOptions& options, const engine::EngineOptions& client,
                const MysqlSql& sql);

  int fd() const noexcept { return events_.get(); }
  // Moves on, and says who was granted.
  std::vector<engine::Ring> answer();

  // How often the door was answered with a look. A request that was sent
  // before a look and is expected only after it may have been missed by it.
  std::uint64_t looks() const noexcept { return looks_; }
  enum class Awaits : std::uint8_t { lock, upgrade };
  void expect(const core::RequestId& id, std::string_view name, std::uint64_t looks_before,
              Awaits what);
  // It has, or gave up, what it awaited.
  void dismiss(const core::RequestId& id, Awaits what);
  void dismiss(const core::RequestId& id);
  // Something is held: it might be revoked.
  void hold();

  // For others, as statements; for ourselves, at once.
  void append_rings(std::string& packet, std::span<const core::Wake> wakes, bool on_mariadb) const;
  void ring_ourselves(std::span<const core::Wake> wakes);

  void forget() noexcept { session_.forget(); }

 private:
  enum class Step : std::uint8_t { off, resting, connecting, hanging, looking, sleeping };
  struct Expected {
    std::string name;
    std::uint64_t version = 0;  // of its row when last seen
    Awaits what = Awaits::lock;
  };

  // With mutex_ held.
  void move_on();
  void on_over();
  void connect();
  void hang();
  // At the locks alone, since most rings are about them; at everything; or at everything, and at
  // those locks once more that may be passing to us: who does that rings before the commit.
  enum class Look : std::uint8_t { at_locks, at_all, settled };
  void look(Look how);
  void sleep();
  void send(Step step, std::string packet, base::Duration patience);
  void rest();
  bool take_news();  // true if somebody is told
  bool tell(const core::RequestId& id, Expected& expected, const MysqlRow& row);
  void watch(int fd, short events);
  void set_timer(base::Duration time);

  const core::SessionId self_;
  const bool enabled_;
  const MysqlSql& sql_;
  base::FileDescriptor events_;  // epoll over the others
  base::FileDescriptor nudge_;
  base::FileDescriptor timer_;
  std::atomic<std::uint64_t> looks_{0};
  std::atomic<bool> on_{false};

  std::mutex mutex_;
  MysqlSession session_;
  Step step_ = Step::off;
  int watched_ = -1;
  bool on_mariadb_ = true;
  bool has_locks_ = true;  // of the server's own
  base::Duration pause_{};
  bool has_notes_ = false;
  std::vector<std::string> passing_;  // the row said that we are next
  Look look_ = Look::at_all;
  base::Time asleep_since_{};
  std::map<core::RequestId, Expected> expected_;
  std::vector<engine::Ring> rings_;
};

}  // namespace holdfast::engines
