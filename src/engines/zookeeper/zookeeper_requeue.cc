// The lock given back and asked for again, in one step.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include "engine/batch.h"
#include "engines/zookeeper/zookeeper_recipe.h"

namespace holdfast::engines {

using core::Outcome;
using core::Status;

// Nobody else is in line: the node stays, under another request's name, and a read that goes
// through the leader is all that it takes. Nothing is said (nullopt) if that cannot be.
engine::Task<std::optional<Outcome>> ZookeeperRecipe::stay(std::string dir, core::Requeue wanted,
                                                           Place old) {
  const base::Time started = base::BootClock::now();
  const std::uint64_t token = old.token + core::kTokenStride;
  const bool same_block = (token + core::kTokenStride - 1) >> kTokenBits == old.token >> kTokenBits;
  if (!old.held || !old.leases.empty() || !same_block || old.shape != wanted.next.shape ||
      old.shape.mode == Mode::permits) {
    co_return std::nullopt;
  }
  ZookeeperPair both{session_->sync(dir), session_->children(dir)};
  auto [synced, listed] = co_await both;
  if (!synced.ok() || !listed.ok()) {
    co_return std::nullopt;
  }
  const LockNote note = co_await note_of(dir, listed.czxid, listed.version);
  const std::string guid = old.guid.empty() ? guid_of(wanted.id) : old.guid;
  if (note.is_revoked(guid) || listed.children.size() != 1 ||
      listed.children.front() != old.child()) {
    co_return std::nullopt;
  }
  Place next{.dir = std::move(dir),
             .shape = old.shape,
             .window = wanted.next.window,
             .path = old.path,
             .guid = guid,
             .token = token,
             .beat = started};
  if (!succeed(wanted.id, wanted.next.id, std::move(next))) {
    co_return std::nullopt;
  }
  Outcome outcome = granted(wanted.next.id, started);
  outcome.gave_back = true;
  co_return outcome;
}

// The old node shows how the name is used, also where the lock's node says nothing or was read
// too long ago to be known.
engine::Task<NodeKind> ZookeeperRecipe::kind_after(std::string dir, core::Shape shape, Place old) {
  if (shape.mode == Mode::permits) {
    co_return NodeKind::mutex;
  }
  const auto nodes = lock_nodes(options_.layout, {old.child()});
  if (shape.mode == Mode::exclusive && old.shape.mode == Mode::exclusive && !nodes.empty()) {
    co_return nodes.front().kind;
  }
  LockNote note = known_note(dir);
  if (!is_known(dir)) {
    note = co_await note_of(dir, 0, 0);
  }
  co_return kind_for(shape, note, nodes);
}

// One step: nobody finds the lock free in between.
// NOLINTNEXTLINE(readability-function-size): the recipe, step by step
engine::Task<Outcome> ZookeeperRecipe::requeue(std::string dir, core::Requeue wanted) {
  const core::Acquire next = wanted.next;
  const Step step{
      .id = next.id, .started = base::BootClock::now(), .queue = next.queue, .first = true};
  const auto old = find(wanted.id);
  const bool known = find(next.id).has_value();
  const bool permits = next.shape.mode == Mode::permits;
  const bool simple = options_.strategy == ZookeeperOptions::Strategy::simple || !old ||
                      (old->path.empty() && old->leases.empty());
  if (known || simple) {
    // Sent before and perhaps applied, or a recipe that has no such step.
    bool moved = false;
    if (known && options_.strategy != ZookeeperOptions::Strategy::simple) {
      moved = co_await recall(next.id);
      if (!moved && find(next.id)) {
        co_return zookeeper_not_recalled();
      }
    }
    Outcome before{.status = Status::released};
    if (moved) {
      forget(wanted.id);
    } else {
      before = co_await release(wanted.id);
      if (before.status == Status::failed) {
        co_return before;
      }
    }
    Outcome outcome = co_await acquire(dir, next);
    outcome.gave_back = moved || before.status == Status::released;
    co_return outcome;
  }
  auto stayed = co_await stay(dir, wanted, *old);
  if (stayed) {
    co_return *std::move(stayed);
  }
  put(next.id, {.dir = dir, .shape = next.shape, .window = next.window, .beat = step.started});
  const NodeKind kind = co_await kind_after(dir, next.shape, *old);
  std::vector<ZookeeperOperation> steps;
  for (const std::string& path : old->leases.empty() ? std::vector{old->path} : old->leases) {
    steps.push_back({.what = ZookeeperOperation::What::remove, .path = path});
  }
  const std::string queue = permits ? dir + "/locks/" : dir + "/";
  steps.push_back({.what = ZookeeperOperation::What::create,
                   .path = queue + node_prefix(options_.layout, kind, next.id),
                   .data = note_text(next.id, next.shape.permits, 0)});
  const ZookeeperReply moved = co_await session_->multi(std::move(steps));
  if (moved.status == ZookeeperStatus::no_node) {
    // Its own nodes are gone, or what the next one was to stand in: then nothing has been done.
    forget(next.id);
    const Outcome before = co_await release(wanted.id);
    if (before.status == Status::failed) {
      co_return before;
    }
    Outcome outcome = co_await acquire(dir, next);
    outcome.gave_back = before.status == Status::released;
    co_return outcome;
  }
  if (!moved.ok()) {
    if (moved.status != ZookeeperStatus::outcome_unknown) {
      forget(next.id);
    }
    co_return zookeeper_failure(moved);
  }
  forget(wanted.id);
  ZookeeperPair both{session_->get(moved.created.front()), session_->children(dir)};
  auto [mine, listed] = co_await both;
  const auto token = zookeeper_token(mine.czxid);
  const bool kept = change(next.id, [&](Place& place) {
    place.path = moved.created.front();
    place.token = token.value_or(0);
  });
  Outcome outcome;
  if (!kept) {
    outcome = abandon(next.id, {.dir = dir, .shape = next.shape, .path = moved.created.front()});
    outcome.gave_back = true;
    co_return outcome;
  }
  if (!mine.ok() || !listed.ok()) {
    change(next.id, [&](Place& place) { place.path.clear(); });  // its token is not known
    co_return zookeeper_failure(mine.ok() ? listed : mine);
  }
  if (!token) {
    outcome = co_await leave(next.id, zookeeper_out_of_tokens());
  } else if (permits) {
    LockNote note = co_await note_of(dir, listed.czxid, listed.version);
    outcome = co_await settle_permits(dir, step, std::move(note), listed.version);
  } else {
    outcome = co_await settle(dir, step, std::move(listed));
  }
  outcome.gave_back = true;
  co_return outcome;
}

}  // namespace holdfast::engines
