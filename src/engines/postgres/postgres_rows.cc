#include "engines/postgres/postgres_rows.h"

#include <algorithm>

#include "engines/postgres/postgres_sql.h"
#include "engines/relational/odd_bytes.h"

namespace holdfast::engines::postgres {
namespace {

using relational::escaped;

// A clock that is centuries ahead must not use up the tokens.
constexpr std::uint64_t kLatestClock = std::uint64_t{1} << 52U;

std::uint64_t microseconds_of(core::Time time) {
  const auto micros = std::chrono::floor<std::chrono::microseconds>(time.time_since_epoch());
  return std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(micros.count(), 0)),
                  kLatestClock);
}

template <typename T, typename Convert>
std::optional<T> cell(const Rows& rows, int row, int column, Convert convert) {
  const auto bytes = rows.at(row, column);
  return bytes ? std::optional<T>{convert(*bytes)} : std::nullopt;
}

std::optional<std::string> text_cell(const Rows& rows, int row, int column) {
  return cell<std::string>(rows, row, column, [](std::string_view bytes) { return bytes; });
}

std::optional<std::int64_t> as_signed(std::optional<std::uint64_t> value) {
  return value ? std::optional{static_cast<std::int64_t>(*value)} : std::nullopt;
}

}  // namespace

StoredLock StoredLock::from(const Rows& rows, int index) {
  StoredLock lock;
  lock.now = to_time(rows.text(index, kNow));
  lock.exists = rows.has(index, kName);
  lock.token_floor = microseconds_of(lock.now);
  if (!lock.exists) {
    lock.token_floor = static_cast<std::uint64_t>(rows.integer(index, kFloor));
    return lock;
  }
  const auto number = [](std::string_view bytes) {
    return static_cast<std::uint64_t>(to_int(bytes));
  };
  lock.version = rows.integer(index, kVersion);
  lock.fenced = to_int(rows.text(index, kFenced)) != 0;
  lock.row.last_token = number(rows.text(index, kLastToken));
  lock.row.request = cell<core::RequestId>(rows, index, kRequest, to_id);
  lock.row.session = cell<core::SessionId>(rows, index, kSession, to_id);
  lock.row.token = cell<std::uint64_t>(rows, index, kToken, number);
  lock.row.ttl = cell<core::Duration>(rows, index, kTtl, to_duration);
  lock.row.since = cell<core::Time>(rows, index, kSince, to_time);
  lock.row.until = cell<core::Time>(rows, index, kUntil, to_time);
  lock.row.record = text_cell(rows, index, kRecord);
  lock.row.parties = text_cell(rows, index, kParties);
  if (rows.has(index, kHolder)) {
    lock.row.holder = Party{.label = relational::unescaped(rows.text(index, kHolder)),
                            .host = relational::unescaped(rows.text(index, kHost)),
                            .pid = rows.integer(index, kPid)};
  }
  return lock;
}

void WrittenRows::add(std::string_view key, const StoredLock& before,
                      const relational::LockRow& after, std::optional<std::uint64_t> fence) {
  names_.add(key);
  // A new row starts anywhere, so that nobody takes it for an earlier one.
  versions_.add(before.exists ? before.version + 1
                              : static_cast<std::int64_t>(base::random_u64() >> 2U));
  last_tokens_.add(as_signed(after.last_token));
  requests_.add(after.request);
  sessions_.add(after.session);
  tokens_.add(as_signed(after.token));
  ttls_.add(after.ttl);
  labels_.add(after.holder ? std::optional{escaped(after.holder->label)} : std::nullopt);
  hosts_.add(after.holder ? std::optional{escaped(after.holder->host)} : std::nullopt);
  pids_.add(after.holder ? std::optional{after.holder->pid} : std::nullopt);
  since_.add(after.since);
  until_.add(after.until);
  idle_at_.add(after.idle_at);
  waiting_.add(after.waiting);
  queues_.add(after.queue);
  parties_.add(after.parties);
  records_.add(after.record);
  fences_.add(as_signed(fence));
}

void WrittenRows::ring(std::string_view key, std::string_view channel, std::string_view payload) {
  rung_names_.add(key);
  channels_.add(channel);
  payloads_.add(payload);
}

std::vector<Bytes> WrittenRows::values() const {
  std::vector<Bytes> all;
  for (const ArrayOf* array :
       {&names_,  &versions_, &last_tokens_, &requests_, &sessions_,   &tokens_,   &ttls_,
        &labels_, &hosts_,    &pids_,        &since_,    &until_,      &idle_at_,  &waiting_,
        &queues_, &parties_,  &records_,     &fences_,   &rung_names_, &channels_, &payloads_}) {
    all.emplace_back(array->bytes());
  }
  return all;
}

}  // namespace holdfast::engines::postgres
