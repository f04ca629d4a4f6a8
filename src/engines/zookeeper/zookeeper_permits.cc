// Curator's InterProcessSemaphoreV2: whoever is first in `locks` may take
// leases, one node a permit, as long as there are fewer than the total.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <algorithm>

#include "engine/batch.h"
#include "engines/zookeeper/zookeeper_recipe.h"

namespace holdfast::engines {
namespace {

using core::Outcome;
using core::Status;

constexpr int kAttempts = 10;
// A request must fit into the server's buffer of 1 MiB.
constexpr std::uint32_t kMaxAtOnce = 1000;

Outcome failure(ErrorCode code, std::string text) {
  return {.status = Status::failed, .error = Error{code, std::move(text), std::nullopt}};
}

bool is_settled(const ZookeeperReply& reply) {
  return reply.ok() || reply.status == ZookeeperStatus::no_node;
}

}  // namespace

engine::Task<ZookeeperReply> ZookeeperRecipe::make_semaphore(std::string dir, std::uint32_t limit) {
  LockNote fresh{.kind = LockNote::Kind::semaphore, .limit = limit};
  ZookeeperReply made = co_await make_lock(dir, std::move(fresh));
  if (made.ok()) {
    ZookeeperPair below{session_->create(dir + "/leases", "", ZookeeperMode::container),
                        session_->create(dir + "/locks", "", ZookeeperMode::container)};
    auto [leases, locks] = co_await below;
    made = std::move(locks);
  }
  co_return made;
}

engine::Task<Outcome> ZookeeperRecipe::enqueue_permits(std::string dir, core::Acquire wanted,
                                                       Step step) {
  const bool too_many = wanted.shape.permits > kMaxAtOnce;
  if (too_many || options_.layout != ZookeeperOptions::Layout::curator) {
    forget(wanted.id);
    co_return failure(ErrorCode::unsupported,
                      too_many ? "zookeeper hands out at most 1000 permits at once; sqlite more"
                               : "layout=kazoo has no semaphores; layout=curator has");
  }
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    ZookeeperPair both{
        session_->create(dir + "/locks/" + node_prefix(options_.layout, NodeKind::mutex, wanted.id),
                         note_text(wanted.id, wanted.shape.permits, 0),
                         ZookeeperMode::ephemeral_sequential),
        session_->children(dir)};
    auto [made, listed] = co_await both;
    if (made.status == ZookeeperStatus::no_node) {
      const ZookeeperReply parent = co_await make_semaphore(dir, wanted.shape.limit);
      if (!is_settled(parent) && parent.status != ZookeeperStatus::node_exists) {
        forget(wanted.id);
        co_return zookeeper_failure(parent);
      }
      continue;
    }
    if (!made.ok()) {
      if (made.status != ZookeeperStatus::outcome_unknown) {
        forget(wanted.id);
      }
      co_return zookeeper_failure(made);
    }
    const auto token = zookeeper_token(made.czxid);
    const bool kept = change(wanted.id, [&path = made.text, &token](Place& place) {
      place.path = path;
      place.token = token.value_or(0);
    });
    if (!kept) {  // its time was up, or its session over, before it was made
      co_return abandon(wanted.id, {.dir = dir, .shape = wanted.shape, .path = made.text});
    }
    if (!listed.ok()) {
      co_return zookeeper_failure(listed);
    }
    if (!token) {
      Outcome used_up = failure(ErrorCode::unavailable, "this ensemble has used up its tokens");
      co_return co_await leave(wanted.id, std::move(used_up));
    }
    if (!lock_nodes(options_.layout, listed.children).empty()) {
      co_return co_await leave(wanted.id, engine::plain(Status::refused, 0));
    }
    LockNote note = co_await note_of(dir, listed.czxid, listed.version);
    co_return co_await settle_permits(dir, step, std::move(note), listed.version);
  }
  forget(wanted.id);
  co_return failure(ErrorCode::unavailable, "zookeeper: the lock's node keeps vanishing");
}

// NOLINTNEXTLINE(readability-function-size): the recipe, step by step
engine::Task<Outcome> ZookeeperRecipe::settle_permits(std::string dir, Step step, LockNote note,
                                                      std::int32_t version) {
  for (;;) {
    const auto place = find(step.id);
    if (!place || place->ending) {
      co_return engine::plain(Status::not_held);
    }
    // Watched by the head of the queue alone; the list is read after the watch is set.
    std::vector<ZookeeperRequest> requests;
    requests.push_back(session_->children(dir + "/locks"));
    requests.push_back(session_->children(dir + "/leases"));
    requests.push_back(session_->get(dir));
    ZookeeperSeveral in_one_go{std::move(requests)};
    const auto replies = co_await in_one_go;
    const ZookeeperReply& locks = replies[0];
    const ZookeeperReply& leases = replies[1];
    const ZookeeperReply& record = replies[2];
    if (!locks.ok() || !is_settled(leases)) {
      co_return zookeeper_failure(locks.ok() ? leases : locks);
    }
    if (!record.ok()) {
      co_return zookeeper_failure(record);
    }
    if (record.version != version) {  // the total may have been another when these were listed
      note = LockNote::parse(record.text);
      version = record.version;
      continue;
    }
    const auto queue = lock_nodes(options_.layout, locks.children);
    const auto held = lock_nodes(options_.layout, leases.children);
    const std::string own = place->path.substr(place->path.rfind('/') + 1);
    const Standing standing = standing_of(queue, own);
    if (!standing.found) {
      if (has_leases(step.id)) {  // another look took them meanwhile
        co_return granted(step.id, step.started);
      }
      forget(step.id);
      co_return engine::plain(Status::not_held);
    }
    const bool alone = queue.size() == 1 && held.empty();
    if (step.first &&
        (note.kind != LockNote::Kind::semaphore || note.limit != place->shape.limit)) {
      const bool unmarked = note.kind != LockNote::Kind::semaphore;
      if (!alone && !unmarked) {
        co_return co_await leave(step.id, engine::plain(Status::refused, note.limit));
      }
      note.kind = LockNote::Kind::semaphore;
      note.limit = place->shape.limit;
      const ZookeeperReply set = co_await session_->set(dir, note.text(), version);
      if (!set.ok() && set.status != ZookeeperStatus::bad_version) {
        co_return zookeeper_failure(set);
      }
      const ZookeeperReply now = co_await session_->get(dir);
      if (!now.ok()) {
        co_return zookeeper_failure(now);
      }
      note = LockNote::parse(now.text);
      remember(dir, now, note);
      version = now.version;
      // Somebody may lock it in another way since.
      const ZookeeperReply listed = co_await session_->children(dir);
      if (!lock_nodes(options_.layout, listed.children).empty()) {
        co_return co_await leave(step.id, engine::plain(Status::refused, 0));
      }
      continue;
    }
    if (place->shape.permits > note.limit) {
      co_return co_await leave(step.id, engine::plain(Status::refused, note.limit));
    }
    if (queue.front().name != own) {
      if (!step.queue) {
        co_return co_await leave(step.id, engine::plain(Status::busy));
      }
      const std::string blocker = dir + "/locks/" + standing.blocker;
      watch_for(blocker, step.id);
      const ZookeeperReply watched = co_await session_->get(blocker, true);
      if (watched.ok()) {
        co_return queued(step.id, step.beat ? step.started : base::Time{}, standing.ahead + 1);
      }
      unwatch(blocker, step.id);
      if (watched.status != ZookeeperStatus::no_node) {
        co_return zookeeper_failure(watched);
      }
      continue;
    }
    const bool dry = std::ranges::none_of(
        held, [&](const LockNode& node) { return note.is_revoked(node.guid); });
    if (dry && held.size() + place->shape.permits <= note.limit) {
      auto taken = co_await take_leases(dir, step, *place, version);
      if (taken) {
        co_return *std::move(taken);
      }
      continue;  // the record is read with the next lists
    }
    if (!step.queue) {
      co_return co_await leave(step.id, engine::plain(Status::busy));
    }
    watch_for(dir + "/leases", step.id);
    watch_for(dir, step.id);
    ZookeeperPair watch{session_->children(dir + "/leases", true), session_->get(dir, true)};
    const auto [again, same] = co_await watch;
    if (!is_settled(again) || !same.ok()) {
      co_return zookeeper_failure(same.ok() ? again : same);
    }
    if (again.children.size() == leases.children.size() && same.version == version) {
      co_return queued(step.id, step.beat ? step.started : base::Time{}, 0);
    }
  }
}

// All leases and out of the queue, at once, if the total is still the one that was compared.
engine::Task<std::optional<Outcome>> ZookeeperRecipe::take_leases(std::string dir, Step step,
                                                                  Place place,
                                                                  std::int32_t version) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::vector<ZookeeperOperation> steps;
    steps.push_back({.path = dir, .version = version});
    for (std::uint32_t i = 0; i < place.shape.permits; ++i) {
      steps.push_back(
          {.what = ZookeeperOperation::What::create,
           .path = dir + "/leases/" + node_prefix(options_.layout, NodeKind::lease, step.id),
           .data = note_text(step.id, place.shape.permits, place.token)});
    }
    steps.push_back({.what = ZookeeperOperation::What::remove, .path = place.path});
    const ZookeeperReply taken = co_await session_->multi(std::move(steps));
    if (taken.ok()) {
      const bool kept = change(step.id, [&](Place& found) {
        found.leases = taken.created;
        found.path.clear();
      });
      if (!kept) {
        co_return abandon(step.id, {.dir = dir, .shape = place.shape, .leases = taken.created});
      }
      co_return granted(step.id, step.started);
    }
    if (taken.status == ZookeeperStatus::outcome_unknown) {
      change(step.id, [](Place& found) { found.path.clear(); });
      co_return zookeeper_failure(taken);
    }
    if (taken.status == ZookeeperStatus::bad_version) {
      co_return std::nullopt;
    }
    if (taken.status != ZookeeperStatus::no_node) {
      co_return zookeeper_failure(taken);
    }
    if (has_leases(step.id)) {  // another look took them meanwhile
      co_return granted(step.id, step.started);
    }
    if (taken.results.back() == ZookeeperStatus::no_node) {  // our node in the queue
      forget(step.id);
      co_return engine::plain(Status::not_held);
    }
    // The container of the leases has vanished; others may make it, too.
    const ZookeeperReply made =
        co_await session_->create(dir + "/leases", "", ZookeeperMode::container);
    if (!made.ok() && made.status != ZookeeperStatus::node_exists) {
      co_return zookeeper_failure(made);
    }
  }
  co_return failure(ErrorCode::unavailable, "zookeeper: the lock's node keeps vanishing");
}

bool ZookeeperRecipe::has_leases(const core::RequestId& id) {
  const auto place = find(id);
  return place && !place->leases.empty();
}

engine::Task<Outcome> ZookeeperRecipe::look_permits(Place place, Step step) {
  std::vector<ZookeeperOperation> checks;
  for (const std::string& path : title(place)) {
    checks.push_back({.path = path});
  }
  ZookeeperPair both{session_->multi(std::move(checks)), session_->children(place.dir)};
  auto [alive, listed] = co_await both;
  if (alive.status == ZookeeperStatus::no_node) {
    if (place.leases.empty() && has_leases(step.id)) {  // another look took them meanwhile
      co_return granted(step.id, step.started);
    }
    forget(step.id);
    co_return engine::plain(Status::not_held);
  }
  if (!alive.ok() || !listed.ok()) {
    co_return zookeeper_failure(alive.ok() ? listed : alive);
  }
  LockNote note = co_await note_of(place.dir, listed.czxid, listed.version);
  if (place.leases.empty()) {
    co_return co_await settle_permits(place.dir, step, std::move(note), listed.version);
  }
  Outcome outcome = granted(step.id, step.started);
  if (outcome.status == Status::granted && note.is_revoked(guid_of(step.id))) {
    outcome.status = Status::revoked;
  }
  co_return outcome;
}

engine::Task<Outcome> ZookeeperRecipe::resize(std::string dir, std::uint32_t limit) {
  if (limit == 0 || limit > kMaxPermits) {
    co_return failure(ErrorCode::invalid_argument,
                      "a semaphore's total is 1 to " + std::to_string(kMaxPermits));
  }
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Holding now = co_await holding(dir);
    if (now.error) {
      co_return Outcome{.status = Status::failed, .error = now.error};
    }
    if (now.holders.empty() && now.queue.empty()) {
      co_return engine::plain(Status::not_held);
    }
    if (now.note.kind != LockNote::Kind::semaphore) {
      co_return engine::plain(Status::refused, 0);
    }
    now.note.limit = limit;
    const ZookeeperReply set = co_await session_->set(dir, now.note.text(), now.version);
    if (set.ok()) {
      co_return engine::plain(Status::done, limit);
    }
    if (set.status != ZookeeperStatus::bad_version) {
      co_return zookeeper_failure(set);
    }
  }
  co_return failure(ErrorCode::unavailable, "zookeeper: others change this semaphore all the time");
}

}  // namespace holdfast::engines
