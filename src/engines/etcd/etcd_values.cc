// Values with versions, as keys whose revision of the last change is the
// version. etcd knows no time of day, only leases: a hold-off is a second key
// that lives for so long, and what was erased goes with its lease.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <algorithm>
#include <utility>

#include "engine/batch.h"
#include "engine/value_text.h"
#include "engines/etcd/etcd_recipe.h"

namespace holdfast::engines {
namespace {

using engine::ValueText;
using What = EtcdOperation::What;

constexpr std::string_view kGrant = "/etcdserverpb.Lease/LeaseGrant";
constexpr std::string_view kTimeToLive = "/etcdserverpb.Lease/LeaseTimeToLive";
constexpr std::string_view kRange = "/etcdserverpb.KV/Range";
constexpr int kAttempts = 50;

std::int64_t whole_seconds(Duration time) {
  return std::max<std::int64_t>(std::chrono::ceil<std::chrono::seconds>(time).count(), 1);
}

Error as_read(Error error) {
  error.code = error.code == ErrorCode::outcome_unknown ? ErrorCode::unavailable : error.code;
  return error;
}

Error strange() {
  return {ErrorCode::unavailable, "etcd: an answer that makes no sense", std::nullopt};
}

core::Value value_of(ValueText text, std::int64_t revision) {
  core::Value value;
  value.bytes = std::move(text.bytes);
  value.version = static_cast<std::uint64_t>(revision);
  value.written = text.written;
  return value;
}

}  // namespace

engine::Task<Result<EtcdRange>> EtcdRecipe::read_keys(std::string key, std::string end) {
  EtcdOperation wanted{.what = What::range, .key = std::move(key), .end = std::move(end)};
  const EtcdRequest::Reply reply = co_await session_->call(kRange, encode_range(wanted));
  if (!reply.ok()) {
    co_return tl::unexpected{as_read(reply.error())};
  }
  auto found = decode_range(reply.body);
  if (!found) {
    co_return tl::unexpected{strange()};
  }
  co_return *std::move(found);
}

// 0 if there is none.
engine::Task<Result<Duration>> EtcdRecipe::hold_off_of(std::string name) {
  std::string key = etcd_hold_off_key(options_, name);
  auto found = co_await read_keys(std::move(key), "");
  if (!found) {
    co_return tl::unexpected{std::move(found.error())};
  }
  if (found->keys.empty()) {
    co_return Duration::zero();
  }
  std::string question = encode_lease(found->keys.front().lease);
  const EtcdRequest::Reply reply = co_await session_->call(kTimeToLive, std::move(question));
  if (!reply.ok()) {
    co_return tl::unexpected{as_read(reply.error())};
  }
  const auto lease = decode_lease(reply.body);
  // The server rounds down: the key is there, so something is left.
  co_return Duration{std::chrono::seconds{lease && lease->ttl > 0 ? lease->ttl + 1 : 1}};
}

engine::Task<Result<std::optional<core::Value>>> EtcdRecipe::load_value(std::string name) {
  std::string key = etcd_value_key(options_, name);
  auto found = co_await read_keys(std::move(key), "");
  if (!found) {
    co_return tl::unexpected{std::move(found.error())};
  }
  std::optional<core::Value> value;
  if (found->keys.empty()) {
    co_return value;
  }
  auto text = ValueText::parse(found->keys.front().value);
  if (!text) {
    co_return tl::unexpected{engine::not_a_value()};
  }
  const bool holds_off = text->hold_off > Duration::zero();
  value.emplace(value_of(*std::move(text), found->keys.front().mod_revision));
  if (holds_off) {
    auto left = co_await hold_off_of(std::move(name));
    if (!left) {
      co_return tl::unexpected{std::move(left.error())};
    }
    value->hold_off = *left;
  }
  co_return value;
}

engine::Task<Result<std::int64_t>> EtcdRecipe::grant_for(Duration time) {
  std::string question = encode_grant(whole_seconds(time));
  const EtcdRequest::Reply reply = co_await session_->call(kGrant, std::move(question));
  const auto answer = reply.ok() ? decode_lease(reply.body) : std::nullopt;
  if (!answer || answer->id == 0) {
    // An unused lease runs out by itself.
    co_return tl::unexpected{reply.ok() ? strange() : as_read(reply.error())};
  }
  co_return answer->id;
}

// What is put in place of `found`, which is the value's key or nothing.
engine::Task<Result<EtcdTransaction>> EtcdRecipe::draft(core::ValueWrite write, ValueText text,
                                                        EtcdRange found) {
  EtcdTransaction transaction;
  const std::string key = etcd_value_key(options_, write.name);
  EtcdOperation put{.what = What::put, .key = key, .value = text.text()};
  if (!write.bytes) {
    auto lease = co_await grant_for(core::kEraseMemory);
    if (!lease) {
      co_return tl::unexpected{std::move(lease.error())};
    }
    put.lease = *lease;
  }
  EtcdOperation hold{.what = What::remove, .key = etcd_hold_off_key(options_, write.name)};
  if (write.hold_off > Duration::zero()) {
    auto lease = co_await grant_for(write.hold_off);
    if (!lease) {
      co_return tl::unexpected{std::move(lease.error())};
    }
    hold.what = What::put;
    hold.lease = *lease;
  }
  if (found.keys.empty()) {
    transaction.compares.push_back({.key = key});  // was never created
  } else {
    transaction.compares.push_back({.key = key,
                                    .target = EtcdCompare::Target::mod,
                                    .revision = found.keys.front().mod_revision});
  }
  transaction.success.push_back(std::move(put));
  transaction.success.push_back(std::move(hold));
  co_return transaction;
}

engine::Task<Result<core::ValueOutcome>> EtcdRecipe::write_value(core::ValueWrite write) {
  ValueText text{.writer = write.writer,
                 .written = engine::moment(client_).token_floor,
                 .hold_off = write.hold_off,
                 .bytes = std::nullopt};
  if (write.bytes) {
    text.bytes.emplace(*write.bytes);
  }
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string key = etcd_value_key(options_, write.name);
    auto found = co_await read_keys(std::move(key), "");
    if (!found) {
      co_return tl::unexpected{std::move(found.error())};
    }
    core::ValueOutcome now;
    if (!found->keys.empty()) {
      const auto there = ValueText::parse(found->keys.front().value);
      if (!there) {
        co_return tl::unexpected{engine::not_a_value()};
      }
      now.applied = there->writer == write.writer;
      const auto revision = static_cast<std::uint64_t>(found->keys.front().mod_revision);
      now.version = now.applied || there->bytes ? revision : 0;
      now.written = there->written;
    }
    if (now.applied || now.version != write.expected.value_or(0)) {
      co_return now;
    }
    auto transaction = co_await draft(write, text, *std::move(found));
    if (!transaction) {
      co_return tl::unexpected{std::move(transaction.error())};
    }
    EtcdTransactionAnswer answer;
    auto problem = co_await transact(*std::move(transaction), answer);
    if (problem) {
      co_return tl::unexpected{*std::move(problem)};
    }
    if (answer.succeeded) {
      co_return core::ValueOutcome{.applied = true,
                                   .version = static_cast<std::uint64_t>(answer.revision),
                                   .written = text.written};
    }
  }
  co_return tl::unexpected{
      Error{ErrorCode::unavailable, "etcd: the value changes all the time", std::nullopt}};
}

engine::Task<Result<std::vector<core::NamedValue>>> EtcdRecipe::list_values(std::string prefix) {
  const std::string all = etcd_value_key(options_, "");
  std::string from = etcd_value_key(options_, prefix);
  std::string to = etcd_prefix_end(from);
  auto found = co_await read_keys(std::move(from), std::move(to));
  if (!found) {
    co_return tl::unexpected{std::move(found.error())};
  }
  std::vector<core::NamedValue> values;
  for (const EtcdKey& key : found->keys) {
    auto text = ValueText::parse(key.value);
    if (!text || !text->bytes) {
      continue;
    }
    const bool holds_off = text->hold_off > Duration::zero();
    core::NamedValue named;
    named.name = etcd_unescaped(std::string_view{key.key}.substr(all.size()));
    named.value = value_of(*std::move(text), key.mod_revision);
    if (holds_off) {
      auto left = co_await hold_off_of(named.name);
      if (!left) {
        co_return tl::unexpected{std::move(left.error())};
      }
      named.value.hold_off = *left;
    }
    values.push_back(std::move(named));
  }
  std::ranges::sort(values, {}, &core::NamedValue::name);
  co_return values;
}

}  // namespace holdfast::engines
