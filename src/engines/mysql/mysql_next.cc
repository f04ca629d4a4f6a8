#include "engines/mysql/mysql_next.h"

#include <cstddef>
#include <utility>

#include "engines/mysql/mysql_text.h"

namespace holdfast::engines::mysql {
namespace {

// Where things stand in the rest of a row with one holder and one waiter; SQL counts from 1. The
// record (core/lock_record_codec) follows its own length, and the two parties follow the record.
constexpr std::size_t kId = 16;
constexpr std::size_t kNumber = 8;
constexpr std::size_t kHolder = 1 + 4 + 21;
constexpr std::size_t kWaiter = kHolder + 69;
constexpr std::size_t kWaiterTtl = kWaiter + 2 * kId + 1 + 4;
constexpr std::size_t kWaiterWindow = kWaiterTtl + kNumber;
constexpr std::size_t kWaiterExpires = kWaiterWindow + 2 * kNumber;
constexpr std::size_t kParties = kWaiter + 69;

bool is_simple(const LockEntry& entry) {
  const core::LockRecord& record = entry.record;
  return !entry.fenced && record.limit() == 0 && record.holders().size() == 1 &&
         record.queue().size() == 1 && record.holders().front().shape.mode == Mode::exclusive &&
         record.queue().front().shape.mode == Mode::exclusive &&
         !record.holders().front().revoked &&
         record.queue().front().ttl == in_microseconds(record.queue().front().ttl) &&
         record.last_token() <= core::kMaxToken - 2 * core::kTokenStride;
}

std::string bytes(std::size_t from, std::size_t count) {
  return "SUBSTR(rest," + std::to_string(from) + ',' + std::to_string(count) + ')';
}

std::string number(const std::string& bytes) {
  return "CONV(HEX(REVERSE(" + bytes + ")),16,-10)";
}

std::string micros_at(std::size_t from) {
  return '(' + number(bytes(from, kNumber)) + " DIV 1000)";
}

std::string as_text(const std::string& bytes) {
  return "CONVERT(" + bytes + " USING utf8mb4)";
}

}  // namespace

LockRow row_with_next(LockEntry entry, Tokens tokens) {
  if (!is_simple(entry)) {
    return row_of(entry);
  }
  if (tokens == Tokens::taken) {
    const core::LockRecord& record = entry.record;
    entry.record =
        core::LockRecord::from_parts({.limit = record.limit(),
                                      .last_token = record.last_token() + core::kTokenStride,
                                      .holders = record.holders(),
                                      .queue = record.queue()});
  }
  LockRow row = row_of(entry);
  row.session = entry.record.queue().front().session;
  return row;
}

bool is_same_next(const LockRow& row, const core::LockRecord& before,
                  const core::LockRecord& after) {
  return !row.rest.empty() && before.queue().size() == 1 && after.queue().size() == 1 &&
         row.session == before.queue().front().session &&
         before.queue().front().id == after.queue().front().id &&
         before.last_token() == after.last_token();
}

NextSql::NextSql(const core::RequestId& holding, const Party& holder) {
  const std::string party = bytes_of(holder);
  is_held = bytes(kHolder, kId) + '=';
  append_hex(is_held, holding);
  is_held += " AND " + bytes(kParties, party.size()) + '=';
  append_hex(is_held, party);

  request = bytes(kWaiter, kId);
  ttl = micros_at(kWaiterTtl);
  ttl_at_first = "LEAST(" + ttl + ',' + micros_at(kWaiterWindow) + ')';
  waits_until = micros_at(kWaiterExpires);
  heard = '(' + waits_until + '-' + micros_at(kWaiterWindow) + ')';

  // The waiter's party: a length and the label, a length and the host, and the process, to the end.
  const std::size_t at = kParties + party.size();
  const std::string label_size = "ORD(" + bytes(at, 1) + ')';
  label = as_text("SUBSTR(rest," + std::to_string(at + 1) + ',' + label_size + ')');
  host = as_text("SUBSTR(rest," + std::to_string(at + 2) + '+' + label_size + ",LENGTH(rest)-" +
                 std::to_string(at + 1 + kNumber) + '-' + label_size + ')');
  pid = number("RIGHT(rest," + std::to_string(kNumber) + ')');
}

}  // namespace holdfast::engines::mysql
