#pragma once

#include <holdfast/error.h>
#include <holdfast/inspect.h>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/lock_record.h"

// A lock record as a row that people can read and single statements can
// change.
namespace holdfast::engines::relational {

using Parties = std::map<core::SessionId, Party>;

// Who holds or waits, as the row tells it: one line a session, its id first.
std::string written(const Parties& parties);
Parties read_parties(const std::string& text);

struct LockRow {
  std::uint64_t last_token = 0;  // the end of the newest grant's block

  // The holder. A row without `record` says everything by these: held by this
  // one request, exclusively and not revoked, or by nobody. With `record` they
  // are for people: the first holder, and how long the last one may stay.
  std::optional<core::RequestId> request;
  std::optional<core::SessionId> session;
  std::optional<std::uint64_t> token;
  std::optional<core::Duration> ttl;
  std::optional<Party> holder;
  std::optional<core::Time> since;
  std::optional<core::Time> until;

  // Everything else: several holders, a queue, a revocation.
  std::optional<std::string> record;   // core/lock_record_codec
  std::optional<std::string> parties;  // written(), of those in `record`
  std::optional<core::Time> idle_at;   // when it is over if nobody acts
  std::int32_t waiting = 0;
  std::optional<std::string> queue;  // for people

  // unavailable: the row is damaged.
  Result<core::LockRecord> to_record() const;
  // Those that the row knows by name.
  Parties known_parties() const;
  static LockRow from(const core::LockRecord& record, const Parties& parties);
};

}  // namespace holdfast::engines::relational
