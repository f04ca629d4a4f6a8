// What people see of a lock, and what they may force.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <algorithm>

#include "engine/ages.h"
#include "engine/batch.h"
#include "engines/etcd/etcd_recipe.h"

namespace holdfast::engines {
namespace {

using core::Outcome;
using core::Status;

constexpr std::string_view kTimeToLive = "/etcdserverpb.Lease/LeaseTimeToLive";
constexpr std::string_view kRange = "/etcdserverpb.KV/Range";
constexpr int kAttempts = 10;
constexpr std::size_t kMostOperations = 100;

}  // namespace

Error etcd_keeps_changing() {
  return {ErrorCode::unavailable, "etcd: the holders change all the time", std::nullopt};
}

Error etcd_changed_too_often() {
  return {ErrorCode::unavailable,
          "etcd: this grant has changed too often while others wait; release it", std::nullopt};
}

engine::Task<LockInfo> EtcdRecipe::describe(std::string name, std::vector<Entrant> line,
                                            engine::Ages ages) {
  const auto since = [&](std::int64_t ms) { return ms == 0 ? Duration::zero() : ages.since(ms); };
  LockInfo info;
  info.name = std::move(name);
  for (const Entrant& each : line) {
    const EtcdNote& note = each.note;
    info.limit = note.shape.limit;
    if (!each.holds) {
      info.queue.push_back({.party = note.party,
                            .mode = note.shape.mode,
                            .permits = note.shape.permits,
                            .waiting_for = since(note.since_ms)});
      continue;
    }
    const EtcdRequest::Reply reply =
        co_await session_->call(kTimeToLive, encode_lease(each.key.lease));
    const auto lease = reply.ok() ? decode_lease(reply.body) : std::nullopt;
    // The server rounds down; nobody is shown less than there is.
    const std::int64_t seconds = lease ? std::min(lease->ttl + 1, lease->granted) : 0;
    const Duration left = std::chrono::seconds{seconds};
    info.holders.push_back({.party = note.party,
                            .mode = note.shape.mode,
                            .permits = note.shape.permits,
                            .token = each.token != 0 ? std::optional{each.token} : std::nullopt,
                            .held_for = since(note.since_ms),
                            .expires_in = std::max<Duration>(left, std::chrono::milliseconds{1}),
                            .revoked = note.revoked});
  }
  co_return info;
}

engine::Task<Result<LockInfo>> EtcdRecipe::show(std::string name) {
  auto dir = etcd_directory(options_, name);
  if (!dir) {
    co_return tl::unexpected{std::move(dir.error())};
  }
  EtcdRange found;
  auto problem = co_await range(*dir, found);
  if (problem) {
    co_return tl::unexpected{*std::move(problem)};
  }
  const engine::Ages ages;
  std::vector<Entrant> line = line_of(std::move(found.keys));
  co_return co_await describe(std::move(name), std::move(line), ages);
}

engine::Task<Result<std::vector<LockInfo>>> EtcdRecipe::list(std::string prefix) {
  EtcdOperation all{.what = EtcdOperation::What::range, .key = options_.prefix};
  if (all.key.empty()) {
    all.key = std::string(1, '\0');
    all.end = std::string(1, '\0');
  } else {
    all.end = etcd_prefix_end(all.key);
  }
  const EtcdRequest::Reply reply = co_await session_->call(kRange, encode_range(all));
  if (!reply.ok()) {
    co_return tl::unexpected{reply.error()};
  }
  const engine::Ages ages;
  std::map<std::string, std::vector<EtcdKey>> locks;
  auto found = decode_range(reply.body).value_or(EtcdRange{});
  for (EtcdKey& key : found.keys) {
    const auto name = etcd_name(options_, key.key);
    // Other keys of the store have no lease, or are no lock's.
    if (name && !name->empty() && name->starts_with(prefix) && key.lease != 0) {
      locks[*name].push_back(std::move(key));
    }
  }
  std::vector<LockInfo> infos;
  for (auto& [name, keys] : locks) {
    std::vector<Entrant> line = line_of(std::move(keys));
    infos.push_back(co_await describe(name, std::move(line), ages));
  }
  co_return infos;
}

// What is noted leaves the names as they stand: our own keys may go on to others meanwhile, and are
// known by what stands in them.
engine::Task<Outcome> EtcdRecipe::revoke(std::string dir, core::Revoke wanted) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    EtcdRange found;
    auto problem = co_await range(dir, found);
    if (problem) {
      co_return engine::failed(*std::move(problem));
    }
    EtcdTransaction transaction;
    std::uint32_t count = 0;
    const auto line = line_up(std::move(found.keys));
    for (const Entrant& each : line) {
      if (!each.holds) {
        continue;
      }
      ++count;
      transaction.compares.push_back({.key = each.key.key,
                                      .target = EtcdCompare::Target::mod,
                                      .revision = each.key.mod_revision});
      EtcdNote note = each.note;
      note.revoked = true;
      transaction.success.push_back(
          {.what = wanted.now ? EtcdOperation::What::remove : EtcdOperation::What::put,
           .key = each.key.key,
           .value = wanted.now ? "" : note.text(),
           .keep_lease = !wanted.now});
      if (transaction.success.size() == kMostOperations) {
        break;
      }
    }
    if (count == 0) {
      co_return Outcome{.status = Status::done};
    }
    EtcdTransactionAnswer answer;
    problem = co_await transact_on(line, std::move(transaction), answer);
    if (problem) {
      co_return engine::failed(*std::move(problem));
    }
    if (answer.succeeded) {
      co_return Outcome{.status = Status::done, .count = count};
    }
  }
  co_return engine::failed(etcd_keeps_changing());
}

// Whoever has one of these keys now does not pass it on as it is while the note may still come.
engine::Task<std::optional<Error>> EtcdRecipe::transact_on(const std::vector<Entrant>& line,
                                                           EtcdTransaction transaction,
                                                           EtcdTransactionAnswer& answer) {
  auto problem = co_await transact(std::move(transaction), answer);
  if (problem && problem->code == ErrorCode::outcome_unknown) {
    const std::lock_guard lock{mutex_};
    for (Entrant each : line) {
      name_heir(each);
      const auto place = each.request ? places_.find(*each.request) : places_.end();
      if (place != places_.end() && place->second.key == each.key.key) {
        place->second.in_doubt_at = each.key.mod_revision;
      }
    }
  }
  co_return problem;
}

// The total stands in every key. Those who hold are marked: they go on holding,
// whatever the total is now. Who wants more than there will be must go.
engine::Task<Outcome> EtcdRecipe::resize(std::string dir, std::uint32_t limit) {
  if (limit == 0 || limit > kMaxPermits) {
    co_return engine::failed({ErrorCode::invalid_argument,
                              "a semaphore's total is 1 to " + std::to_string(kMaxPermits),
                              std::nullopt});
  }
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    EtcdRange found;
    auto problem = co_await range(dir, found);
    if (problem) {
      co_return engine::failed(*std::move(problem));
    }
    const auto line = line_up(std::move(found.keys));
    if (line.empty()) {
      co_return Outcome{.status = Status::not_held};
    }
    if (line.front().note.shape.limit == 0) {
      co_return Outcome{.status = Status::refused};
    }
    if (line.size() > kMostOperations) {
      co_return engine::failed({ErrorCode::unsupported,
                                "etcd resizes semaphores with up to 100 users; sqlite with more",
                                std::nullopt});
    }
    EtcdTransaction transaction;
    for (const Entrant& each : line) {
      EtcdNote note = each.note;
      note.granted = each.holds;
      note.shape.limit = limit;
      const bool hopeless = !each.holds && note.shape.permits > limit;
      transaction.compares.push_back({.key = each.key.key,
                                      .target = EtcdCompare::Target::mod,
                                      .revision = each.key.mod_revision});
      transaction.success.push_back(
          {.what = hopeless ? EtcdOperation::What::remove : EtcdOperation::What::put,
           .key = each.key.key,
           .value = hopeless ? "" : note.text(),
           .keep_lease = !hopeless});
    }
    EtcdTransactionAnswer answer;
    problem = co_await transact_on(line, std::move(transaction), answer);
    if (problem) {
      co_return engine::failed(*std::move(problem));
    }
    if (answer.succeeded) {
      co_return Outcome{.status = Status::done, .count = limit};
    }
  }
  co_return engine::failed(etcd_keeps_changing());
}

}  // namespace holdfast::engines
