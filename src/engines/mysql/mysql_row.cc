#include "engines/mysql/mysql_row.h"

#include <algorithm>
#include <charconv>
#include <chrono>

namespace holdfast::engines {
namespace {

// The columns of MysqlSql's reads, in their order.
enum Column : std::uint8_t {
  kName,
  kVersion,
  kMark,
  kNow,
  kToken,
  kRequest,
  kSession,
  kHolder,
  kHost,
  kPid,
  kSince,
  kUntil,
  kTtl,
  kRest
};

template <typename Number>
Number number(const MysqlReply::Cell& cell) {
  Number value = 0;
  if (cell) {
    std::from_chars(cell->data(), cell->data() + cell->size(), value);
  }
  return value;
}

std::string text(const MysqlReply::Cell& cell) {
  return cell ? std::string{*cell} : std::string{};
}

base::Id id(const MysqlReply::Cell& cell) {
  base::Id value;
  if (cell && cell->size() == value.bytes.size()) {
    std::transform(cell->begin(), cell->end(), value.bytes.begin(),
                   [](char byte) { return static_cast<std::uint8_t>(byte); });
  }
  return value;
}

base::Duration microseconds(const MysqlReply::Cell& cell) {
  return std::chrono::microseconds{number<std::int64_t>(cell)};
}

}  // namespace

MysqlRow read_row(const MysqlReply& reply, std::size_t index) {
  const auto cell = [&](Column column) { return reply.cell(index, column); };
  MysqlRow read;
  read.now = base::Time{microseconds(cell(kNow))};
  if (!cell(kName)) {
    read.is_clock_only = true;
    return read;
  }
  read.name = *cell(kName);
  read.version = number<std::uint64_t>(cell(kVersion));
  read.mark = number<std::uint64_t>(cell(kMark));
  LockRow& row = read.row;
  row.last_token = number<std::uint64_t>(cell(kToken));
  row.request = id(cell(kRequest));
  row.session = id(cell(kSession));
  row.holder = {.label = text(cell(kHolder)),
                .host = text(cell(kHost)),
                .pid = number<std::int64_t>(cell(kPid))};
  row.since = base::Time{microseconds(cell(kSince))};
  row.until = base::Time{microseconds(cell(kUntil))};
  row.ttl = microseconds(cell(kTtl));
  row.rest = text(cell(kRest));
  return read;
}

}  // namespace holdfast::engines
