#include "engines/postgres/postgres_next.h"

#include <array>
#include <chrono>
#include <cstdio>

#include "engines/postgres/postgres_sql_parts.h"
#include "engines/postgres/postgres_values.h"
#include "engines/relational/odd_bytes.h"

namespace holdfast::engines::postgres {
namespace {

using relational::escaped;
using std::chrono::floor;
using std::chrono::microseconds;

// As the server writes it.
std::string uuid(const base::Id& id) {
  std::string text = id.hex();
  for (const std::size_t at : {20U, 16U, 12U, 8U}) {
    text.insert(at, 1, '-');
  }
  return text;
}

std::string timestamp(core::Time time) {
  const auto micros = floor<microseconds>(time.time_since_epoch());
  const auto days = floor<std::chrono::days>(micros);
  const std::chrono::year_month_day date{std::chrono::sys_days{days}};
  const std::chrono::hh_mm_ss clock{micros - days};
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02u %02d:%02d:%02d.%06d+00",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()),
                static_cast<int>(clock.subseconds().count()));
  return text.data();
}

bool is_simple(const core::LockRecord& record) {
  return record.limit() == 0 && record.holders().size() == 1 && record.queue().size() == 1 &&
         record.holders().front().shape.mode == Mode::exclusive &&
         record.queue().front().shape.mode == Mode::exclusive &&
         !record.holders().front().revoked &&
         record.last_token() <= core::kMaxToken - 2 * core::kTokenStride;
}

struct Field {
  std::string_view name;
  std::string_view as;  // of which type
};
constexpr std::array kFields{Field{"{next request}", "uuid"},
                             Field{"{next session}", "uuid"},
                             Field{"{next token}", "bigint"},
                             Field{"{next ttl}", "interval"},
                             Field{"{next ttl at first}", "interval"},
                             Field{"{next waits until}", "timestamptz"},
                             Field{"{next label}", "text"},
                             Field{"{next host}", "text"},
                             Field{"{next pid}", "bigint"},
                             Field{"{next was heard}", "timestamptz"}};
constexpr int kFirstField = 3;

}  // namespace

std::string prepare_next(core::LockRecord& record, const relational::Parties& parties) {
  if (!is_simple(record)) {
    return "";
  }
  const core::Waiter& next = record.queue().front();
  const auto found = parties.find(next.session);
  const Party party = found == parties.end() ? Party{} : found->second;
  std::string line = uuid(record.holders().front().id) + "\tpasses on to";
  for (const std::string& field :
       {uuid(next.id), uuid(next.session), std::to_string(record.last_token() + 1),
        interval_text(next.ttl), interval_text(std::min(next.ttl, next.window)),
        timestamp(next.expires), escaped(party.label), escaped(party.host),
        std::to_string(party.pid), timestamp(next.expires - next.window)}) {
    line += "\t" + field;
  }
  record = core::LockRecord::from_parts({.limit = record.limit(),
                                         .last_token = record.last_token() + core::kTokenStride,
                                         .holders = record.holders(),
                                         .queue = record.queue()});
  return line + "\t\n";
}

std::string with_next(std::string sql) {
  int number = kFirstField;
  for (const Field& field : kFields) {
    sql = replaced(std::move(sql), field.name,
                   "split_part(l.parties, E'\\t', " + std::to_string(number++) +
                       ")::" + std::string{field.as});
  }
  return sql;
}

}  // namespace holdfast::engines::postgres
