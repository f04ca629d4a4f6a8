#include "engines/mysql/mysql_row.h"

#include <algorithm>
#include <charconv>
#include <chrono>

namespace holdfast::engines {
namespace {

// The columns of MysqlSql's reads, in their order.
enum class Column : std::uint8_t {
  name,
  version,
  mark,
  now,
  token,
  request,
  session,
  holder,
  host,
  pid,
  since,
  until,
  ttl,
  rest
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

base::Duration microseconds(const MysqlReply::Cell& cell) {
  return std::chrono::microseconds{number<std::int64_t>(cell)};
}

}  // namespace

base::Id read_id(const MysqlReply::Cell& cell) {
  base::Id value;
  if (cell && cell->size() == value.bytes.size()) {
    std::transform(cell->begin(), cell->end(), value.bytes.begin(),
                   [](char byte) { return static_cast<std::uint8_t>(byte); });
  }
  return value;
}

MysqlVerdict read_verdict(const MysqlReply& reply, std::size_t index) {
  return {.version = number<std::uint64_t>(reply.cell(index, 0)),
          .mark = number<std::uint64_t>(reply.cell(index, 1)),
          .last_token = number<std::uint64_t>(reply.cell(index, 2)),
          .ttl = microseconds(reply.cell(index, 3))};
}

MysqlRow read_row(const MysqlReply& reply, std::size_t index) {
  const auto cell = [&](Column column) {
    return reply.cell(index, static_cast<std::size_t>(column));
  };
  MysqlRow read;
  read.now = base::Time{microseconds(cell(Column::now))};
  if (!cell(Column::name)) {
    read.is_clock_only = true;
    return read;
  }
  read.name = *cell(Column::name);
  read.version = number<std::uint64_t>(cell(Column::version));
  read.mark = number<std::uint64_t>(cell(Column::mark));
  LockRow& row = read.row;
  row.last_token = number<std::uint64_t>(cell(Column::token));
  row.request = read_id(cell(Column::request));
  row.session = read_id(cell(Column::session));
  row.holder = {.label = text(cell(Column::holder)),
                .host = text(cell(Column::host)),
                .pid = number<std::int64_t>(cell(Column::pid))};
  row.since = base::Time{microseconds(cell(Column::since))};
  row.until = base::Time{microseconds(cell(Column::until))};
  row.ttl = microseconds(cell(Column::ttl));
  row.rest = text(cell(Column::rest));
  return read;
}

}  // namespace holdfast::engines
