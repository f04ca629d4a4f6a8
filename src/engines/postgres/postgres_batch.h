#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/lock_record.h"
#include "engine/engine.h"
#include "engine/talk.h"
#include "engines/postgres/postgres_doorbell.h"
#include "engines/postgres/postgres_rows.h"
#include "engines/postgres/postgres_session.h"
#include "engines/postgres/postgres_shared.h"
#include "engines/relational/known_names.h"
#include "engines/relational/lock_row.h"

namespace holdfast::engines::postgres {

// One batch of commands on its way through the store. A name with one plain
// command goes the short way: one conditional statement on plain columns, no
// read before. All others are read, go through the lock record here, and are
// written back if nobody was faster.
class Batch {
 public:
  Batch(const Shared& shared, engine::Driver& driver, Session& session, Doorbell& doorbell,
        relational::KnownNames& known, std::span<const core::Command> commands);

  engine::Talk<engine::Outcomes> run();

 private:
  enum class Way : std::uint8_t { take, release, renew, requeue, exchange, record, done };

  struct Entry {
    std::string key;  // the name as the table has it
    std::vector<std::size_t> commands;
    Way way = Way::record;
    Way from = Way::record;  // before it was found exchangeable
    std::optional<StoredLock> stored;
    // What the lock record made of it, to be written.
    core::LockRecord before;
    core::LockRecord after;
    std::vector<core::Wake> wakes;
    bool guarded = false;  // somebody's transaction keeps the fence locked
  };
  using Entries = std::vector<Entry*>;

  void sort_out();
  Way way_for(const Entry& entry) const;
  Entries on(Way way);

  Entries exchangeable();
  Call exchange_call(const Entries& entries) const;
  Call take_call(const Entries& entries) const;
  Call change_call(const Entries& entries, const std::string& one, const std::string& many) const;
  Call requeue_call(const Entry& entry) const;
  Call read_call(const Entries& entries) const;
  Call write_call(const Entries& entries) const;

  engine::Talk<bool> hear();
  engine::Talk<bool> first_round();  // false: everything has failed
  void take_rows(const Entries& entries, const Result<Rows>& rows, bool read_only);
  void settle_short_way(Entry& entry, const Rows& rows, int index);
  void fail(Entry& entry, const Error& error);

  // Runs the record; true if there is something to write.
  bool apply(Entry& entry);
  bool tells_of_a_grant(const Entry& entry) const;
  core::LockRecord before_commands(const Entry& entry, core::LockRecord record) const;
  bool queues_someone(const Entries& entries) const;
  std::optional<std::uint64_t> new_fence(const Entry& entry) const;
  engine::Talk<bool> write(const Entries& entries);
  void take_written(const Entries& entries, const Result<Rows>& rows);
  engine::Talk<bool> pause_before_retry();

  const Shared& shared_;
  engine::Driver& driver_;
  Session& session_;
  Doorbell& doorbell_;
  relational::KnownNames& known_;
  const std::span<const core::Command> commands_;
  const base::Time give_up_;
  int rounds_ = 0;
  engine::Outcomes outcomes_;
  std::map<std::string, Entry> entries_;  // in the order in which rows are locked
};

}  // namespace holdfast::engines::postgres
