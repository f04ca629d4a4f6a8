// The values of LeaseEngine: one row a value, changed by one conditional
// statement; what is there afterwards is read in the same round trip.
#include <utility>

#include "base/jitter.h"
#include "engine/batch.h"
#include "engines/postgres/postgres_engine.h"
#include "engines/postgres/postgres_errors.h"
#include "engines/relational/odd_bytes.h"

namespace holdfast::engines::postgres {
namespace {

using engine::Talk;
using namespace std::chrono_literals;

constexpr int kCollisions = 20;

// Columns of what is read.
constexpr int kValueName = 0;
constexpr int kValueVersion = 1;
constexpr int kValueWritten = 2;
constexpr int kValueHoldOff = 3;
constexpr int kValueWriter = 4;
constexpr int kValueBytes = 5;

core::Micros micros_of(std::string_view time) {
  const auto since_epoch = to_time(time).time_since_epoch();
  return static_cast<core::Micros>(
      std::chrono::duration_cast<std::chrono::microseconds>(since_epoch).count());
}

core::Value value_of(const Rows& rows, int row) {
  core::Value value;
  if (const auto bytes = rows.at(row, kValueBytes)) {
    value.bytes.emplace(*bytes);
  }
  value.version = static_cast<std::uint64_t>(rows.integer(row, kValueVersion));
  value.written = micros_of(rows.text(row, kValueWritten));
  value.hold_off = std::chrono::microseconds{rows.integer(row, kValueHoldOff)};
  return value;
}

Error nothing_changed(Error error) {
  error.code = error.code == ErrorCode::outcome_unknown ? ErrorCode::unavailable : error.code;
  return error;
}

// Of what was written, in the statement's own words, or of what is there.
core::ValueOutcome outcome_of(const Rows& written, const Rows& found,
                              const core::ValueWrite& write) {
  if (written.size() == 1) {
    return {.applied = true,
            .version = static_cast<std::uint64_t>(written.integer(0, 0)),
            .written = micros_of(written.text(0, 1))};
  }
  if (found.size() == 0) {
    return {};
  }
  const core::Value value = value_of(found, 0);
  const bool applied = to_id(found.text(0, kValueWriter)) == write.writer;
  return {.applied = applied,
          .version = applied || value.bytes ? value.version : 0,
          .written = value.written};
}

}  // namespace

Call LeaseEngine::write_call(const core::ValueWrite& write) const {
  const Bytes bytes = write.bytes ? Bytes{std::string{*write.bytes}} : std::nullopt;
  Call call{
      .sql = write.expected ? &shared_.sql.change_value : &shared_.sql.create_value,
      .values = {shared_.test_time(), relational::escaped(write.name), bytes, binary(write.writer),
                 write.hold_off > Duration::zero() ? Bytes{binary(write.hold_off)} : std::nullopt}};
  if (write.expected) {
    call.values.emplace_back(binary(static_cast<std::int64_t>(*write.expected)));
  }
  return call;
}

Talk<Result<core::ValueOutcome>> LeaseEngine::put_value(const core::ValueWrite* write) {
  for (int collisions = 0;; ++collisions) {
    if (!desk_.session().is_open()) {
      if (auto connected = co_await desk_.session().connect(); !connected) {
        co_return tl::unexpected{connected.error()};
      }
    }
    std::vector<Call> calls;
    calls.push_back(write_call(*write));
    calls.push_back({.sql = &shared_.sql.read_value,
                     .values = {shared_.test_time(), relational::escaped(write->name)}});
    auto answers = co_await desk_.session().exchange(std::move(calls));
    Result<Rows>& written = answers.at(0);
    if (written && answers.at(1)) {
      co_return outcome_of(*written, *answers.at(1), *write);
    }
    if (written && written->size() == 1) {
      co_return outcome_of(*written, *written, *write);
    }
    const Error& error = written ? answers.at(1).error() : written.error();
    if (!is_contention(error) || collisions >= kCollisions) {
      co_return tl::unexpected{error};
    }
  }
}

Talk<Result<std::vector<core::NamedValue>>> LeaseEngine::find_values(const std::string* sql,
                                                                     std::string key) {
  if (!desk_.session().is_open()) {
    if (auto connected = co_await desk_.session().connect(); !connected) {
      co_return tl::unexpected{connected.error()};
    }
  }
  Call call{.sql = sql, .values = {shared_.test_time(), std::move(key)}};
  auto rows = co_await desk_.session().ask(std::move(call));
  if (!rows) {
    co_return tl::unexpected{nothing_changed(rows.error())};
  }
  std::vector<core::NamedValue> all;
  for (int i = 0; i < rows->size(); ++i) {
    core::NamedValue named;
    named.name = relational::unescaped(rows->text(i, kValueName));
    named.value = value_of(*rows, i);
    all.push_back(std::move(named));
  }
  co_return all;
}

Result<std::optional<core::Value>> LeaseEngine::load_value(std::string_view name) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  if (auto good = engine::check_name(name); !good) {
    return tl::unexpected{std::move(good.error())};
  }
  auto found = desk_.run<Result<std::vector<core::NamedValue>>>(
      *driver_, [&] { return find_values(&shared_.sql.read_value, relational::escaped(name)); });
  if (!found) {
    return tl::unexpected{std::move(found.error())};
  }
  std::optional<core::Value> value;
  if (!found->empty()) {
    value.emplace(std::move(found->front().value));
  }
  return value;
}

Result<core::ValueOutcome> LeaseEngine::write_value(const core::ValueWrite& write) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  if (auto good = engine::check_name(write.name); !good) {
    return tl::unexpected{std::move(good.error())};
  }
  return desk_.run<Result<core::ValueOutcome>>(*driver_, [&] { return put_value(&write); });
}

Result<std::vector<core::NamedValue>> LeaseEngine::list_values(std::string_view prefix) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  return desk_.run<Result<std::vector<core::NamedValue>>>(
      *driver_, [&] { return find_values(&shared_.sql.list_values, relational::escaped(prefix)); });
}

}  // namespace holdfast::engines::postgres
