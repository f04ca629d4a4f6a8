// Mutex and read-write lock: a node in the lock's queue, the first holds, and
// who waits watches the one in front.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include "engines/zookeeper/zookeeper_recipe.h"

#include <algorithm>
#include <variant>

#include "engine/batch.h"

namespace holdfast::engines {
namespace {

using core::Outcome;
using core::Status;

// A container may vanish between our making it and our using it; not for ever.
constexpr int kAttempts = 10;

Outcome keeps_vanishing() {
  return engine::failed(
      {ErrorCode::unavailable, "zookeeper: the lock's node keeps vanishing", std::nullopt});
}

}  // namespace

engine::Task<Outcome> ZookeeperRecipe::perform(core::Command command) {
  if (auto good = engine::check_name(command.name); !good) {
    co_return engine::failed(std::move(good.error()));
  }
  auto dir = zookeeper_path(options_, command.name);
  if (!dir) {
    co_return engine::failed(std::move(dir.error()));
  }
  if (const auto* wanted = std::get_if<core::Acquire>(&command.operation)) {
    co_return co_await acquire(*dir, *wanted);
  }
  if (const auto* wanted = std::get_if<core::Poll>(&command.operation)) {
    co_return co_await look(wanted->id, wanted->heartbeat ? Beat::yes : Beat::no);
  }
  if (const auto* wanted = std::get_if<core::Release>(&command.operation)) {
    co_return co_await release(wanted->id);
  }
  if (const auto* wanted = std::get_if<core::Requeue>(&command.operation)) {
    co_return co_await requeue(*dir, *wanted);
  }
  if (const auto* wanted = std::get_if<core::Revoke>(&command.operation)) {
    co_return co_await revoke(*dir, *wanted);
  }
  if (const auto* wanted = std::get_if<core::Resize>(&command.operation)) {
    co_return co_await resize(*dir, wanted->limit);
  }
  std::vector<core::RequestId> ids{std::get<core::Renew>(command.operation).id};
  auto outcomes = co_await renew(std::move(ids));
  co_return outcomes.front();
}

engine::Task<Outcome> ZookeeperRecipe::acquire(std::string dir, core::Acquire wanted) {
  const Step step{
      .id = wanted.id, .started = base::BootClock::now(), .queue = wanted.queue, .first = true};
  if (const auto place = find(wanted.id)) {
    bool there = !place->path.empty() || !place->leases.empty() ||
                 options_.strategy == ZookeeperOptions::Strategy::simple;
    if (!there) {
      there = co_await recall(wanted.id);
    }
    if (there) {
      co_return co_await look(wanted.id, Beat::yes);
    }
    if (find(wanted.id)) {  // a second node would outlive the release of the first
      co_return zookeeper_not_recalled();
    }
  }
  put(wanted.id,
      {.dir = dir, .shape = wanted.shape, .window = wanted.window, .beat = step.started});
  if (options_.strategy == ZookeeperOptions::Strategy::simple) {
    co_return co_await take_simple(dir, step);
  }
  if (wanted.shape.mode == Mode::permits) {
    co_return co_await enqueue_permits(dir, wanted, step);
  }
  co_return co_await enqueue(dir, wanted, step);
}

std::string ZookeeperRecipe::note_text(const core::RequestId& id, std::uint32_t permits,
                                       std::uint64_t token) const {
  return PartyNote{.party = client_.party, .permits = permits, .token = token, .guid = guid_of(id)}
      .text();
}

// NOLINTNEXTLINE(readability-function-size): the recipe, step by step
engine::Task<Outcome> ZookeeperRecipe::enqueue(std::string dir, core::Acquire wanted, Step step) {
  if (!is_known(dir)) {
    co_await note_of(dir, 0, 0);  // a wrong guess would cost it its place in the queue
  }
  struct Users {
    LockNote note;
    std::vector<LockNode> others;
  };
  std::optional<Users> seen_there;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const NodeKind kind = seen_there ? kind_for(wanted.shape, seen_there->note, seen_there->others)
                                     : kind_for(wanted.shape, known_note(dir), {});
    const auto company = is_known(dir) ? ZookeeperJoint::Company::yes : ZookeeperJoint::Company::no;
    auto wish = joint_->create(dir, node_prefix(options_.layout, kind, wanted.id),
                               note_text(wanted.id, 1, 0), seen(dir), company);
    auto [made, listed] = co_await wish;
    if (made.status == ZookeeperStatus::no_node) {
      seen_there.reset();
      LockNote fresh{.kind = fresh_kind(wanted.shape)};
      const ZookeeperReply parent = co_await make_lock(dir, std::move(fresh));
      if (!parent.ok()) {
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
    const ZookeeperJoint::Seen after{.czxid = listed.czxid, .changes = listed.changes};
    const bool kept = change(wanted.id, [&path = made.text, &token, &after](Place& place) {
      place.path = path;
      place.token = token.value_or(0);
      place.seen = after;
    });
    if (!kept) {  // its time was up, or its session over, before it was made
      co_return abandon(wanted.id, {.dir = dir, .shape = wanted.shape, .path = made.text});
    }
    if (!token) {
      co_return co_await leave(wanted.id, zookeeper_out_of_tokens());
    }
    if (!listed.ok()) {
      co_return zookeeper_failure(listed);
    }
    LockNote note = co_await note_of(dir, listed.czxid, listed.version);
    auto others = lock_nodes(options_.layout, listed.children);
    std::erase_if(others, [&](const LockNode& node) { return node.guid == guid_of(wanted.id); });
    // Those who showed what others call theirs may have left since.
    const bool nobody_says = note.kind == LockNote::Kind::none && others.empty();
    if (kind_for(wanted.shape, note, others) == kind || (seen_there && nobody_says)) {
      co_return co_await settle(dir, step, std::move(listed));
    }
    seen_there = Users{.note = std::move(note), .others = std::move(others)};
    // We guessed wrong what others call theirs: once more.
    const ZookeeperReply removed = co_await session_->remove(made.text);
    if (!removed.ok() && removed.status != ZookeeperStatus::no_node) {
      co_return zookeeper_failure(removed);
    }
    change(wanted.id, [](Place& place) { place.path.clear(); });
  }
  forget(wanted.id);
  co_return keeps_vanishing();
}

// Where does it stand, by this list?
// NOLINTNEXTLINE(readability-function-size): the recipe, step by step
engine::Task<Outcome> ZookeeperRecipe::settle(std::string dir, Step step, ZookeeperReply listed) {
  for (;;) {
    const auto place = find(step.id);
    if (!place || place->ending) {
      co_return engine::plain(Status::not_held);
    }
    const LockNote note = co_await note_of(dir, listed.czxid, listed.version);
    const auto nodes = lock_nodes(options_.layout, listed.children);
    if (step.first) {
      const bool is_reader = place->shape.mode == Mode::shared;
      const auto is_mutex = [](const LockNode& node) { return node.kind == NodeKind::mutex; };
      if (is_reader &&
          (note.kind == LockNote::Kind::mutex ||
           (note.kind == LockNote::Kind::none && std::ranges::any_of(nodes, is_mutex)))) {
        co_return co_await leave(step.id, engine::plain(Status::refused, 0));
      }
      if (co_await is_semaphore_used(dir, listed.children)) {
        co_return co_await leave(step.id, engine::plain(Status::refused, std::max(note.limit, 1U)));
      }
    }
    const std::string guid = place->guid.empty() ? guid_of(step.id) : place->guid;
    Standing standing = standing_of(nodes, place->child());
    if (!standing.found) {
      forget(step.id);
      co_return engine::plain(Status::not_held);
    }
    if (note.is_revoked(guid)) {
      Outcome outcome = granted(step.id, step.started);
      if (outcome.status == Status::granted) {
        outcome.status = Status::revoked;
      }
      co_return outcome;
    }
    if (standing.holds && !place->held) {
      // Whoever revoked the holders wants the lock to run dry.
      for (const LockNode& node : nodes) {
        if (note.is_revoked(node.guid)) {
          standing = {.found = true, .holds = false, .ahead = 0, .blocker = node.name};
        }
      }
    }
    if (standing.holds) {
      co_return granted(step.id, step.started);
    }
    if (!step.queue) {
      co_return co_await leave(step.id, engine::plain(Status::busy));
    }
    const std::string blocker = dir + "/" + standing.blocker;
    watch_for(blocker, step.id);
    const ZookeeperReply watched = co_await session_->get(blocker, true);
    if (watched.ok()) {
      change(step.id, [&](Place& mine) {
        if (std::ranges::find(mine.watched, blocker) != mine.watched.end()) {
          mine.ahead = standing.ahead;
        }
      });
      co_return queued(step.id, step.beat ? step.started : base::Time{}, standing.ahead);
    }
    unwatch(blocker, step.id);
    if (watched.status != ZookeeperStatus::no_node) {
      co_return zookeeper_failure(watched);
    }
    listed = co_await session_->children(dir);
    if (!listed.ok()) {
      co_return zookeeper_failure(listed);
    }
  }
}

// Out of the queue again, with this answer.
engine::Task<Outcome> ZookeeperRecipe::leave(core::RequestId id, Outcome outcome) {
  const Outcome left = co_await release(id);
  co_return left.status == Status::failed ? left : outcome;
}

// The check is a write, decided by a quorum: it proves that our session lives.
// A partitioned server would go on answering reads and pings.
engine::Task<Outcome> ZookeeperRecipe::look(core::RequestId id, Beat beat) {
  const Step step{.id = id, .started = base::BootClock::now(), .beat = beat == Beat::yes};
  auto place = find(id);
  if (place && place->path.empty() && place->leases.empty() &&
      options_.strategy != ZookeeperOptions::Strategy::simple) {
    co_await recall(id);
    place = find(id);
  }
  if (!place || place->ending) {
    co_return engine::plain(Status::not_held);
  }
  if (place->path.empty() && place->leases.empty() &&
      options_.strategy != ZookeeperOptions::Strategy::simple) {
    co_return zookeeper_not_recalled();
  }
  if (options_.strategy == ZookeeperOptions::Strategy::simple && !place->held) {
    co_return co_await take_simple(place->dir, step);
  }
  if (place->shape.mode == Mode::permits) {
    co_return co_await look_permits(*place, step);
  }
  if (place->ahead && !place->held) {
    co_return co_await look_from_line(*place, step);
  }
  std::vector<ZookeeperOperation> checks;
  for (const std::string& path : title(*place)) {
    checks.push_back({.path = path});
  }
  ZookeeperPair both{session_->multi(std::move(checks)), session_->children(place->dir)};
  auto [alive, listed] = co_await both;
  if (alive.status == ZookeeperStatus::no_node) {
    forget(id);
    if (!place->badge.empty()) {
      co_return abandon(id, {.dir = place->dir, .shape = place->shape, .badge = place->badge});
    }
    co_return engine::plain(Status::not_held);
  }
  if (!alive.ok()) {
    co_return zookeeper_failure(alive);
  }
  if (options_.strategy == ZookeeperOptions::Strategy::simple) {
    co_return granted(id, step.started);
  }
  if (!listed.ok()) {
    co_return zookeeper_failure(listed);
  }
  co_return co_await settle(place->dir, step, std::move(listed));
}

// Who watches the one in front and has not heard of it knows where it stands: only the proof
// of life is left to ask for.
engine::Task<Outcome> ZookeeperRecipe::look_from_line(Place place, Step step) {
  if (!step.beat) {
    co_return queued(step.id, {}, *place.ahead);
  }
  auto wish = joint_->check(place.path);
  const ZookeeperReply alive = co_await wish;
  if (alive.status == ZookeeperStatus::no_node) {
    forget(step.id);
    co_return engine::plain(Status::not_held);
  }
  if (!alive.ok()) {
    co_return zookeeper_failure(alive);
  }
  const auto now = find(step.id);
  if (now && now->ahead && !now->held) {
    co_return queued(step.id, step.started, *now->ahead);
  }
  ZookeeperReply listed = co_await session_->children(place.dir);
  if (!listed.ok()) {
    co_return zookeeper_failure(listed);
  }
  co_return co_await settle(place.dir, step, std::move(listed));
}

engine::Task<Outcome> ZookeeperRecipe::release(core::RequestId id) {
  auto place = find(id);
  if (place && options_.strategy == ZookeeperOptions::Strategy::simple) {
    if (place->path.empty()) {
      co_return co_await leave_simple(id, *place);
    }
    co_return co_await give_back_simple(id, place->dir);
  }
  if (place && place->path.empty() && place->leases.empty()) {
    const bool there = co_await recall(id);
    if (!there && find(id)) {  // it could not be asked
      co_return zookeeper_not_recalled();
    }
  }
  place = find(id);
  if (!place) {
    co_return engine::plain(Status::not_held);
  }
  std::vector<ZookeeperOperation> removes;
  for (const std::string& lease : place->leases) {
    removes.push_back({.what = ZookeeperOperation::What::remove, .path = lease});
  }
  if (removes.empty()) {
    removes.push_back({.what = ZookeeperOperation::What::remove, .path = place->path});
  }
  ZookeeperReply removed;
  if (removes.size() == 1) {
    auto wish = joint_->remove(removes.front().path);
    removed = co_await wish;
  } else {
    removed = co_await session_->multi(std::move(removes));
  }
  // A look may have turned its place in the queue into leases meanwhile.
  if (removed.status == ZookeeperStatus::no_node && place->leases.empty() && has_leases(id)) {
    co_return co_await release(id);
  }
  if (removed.ok() && place->leases.empty()) {
    note_release(*place);
  }
  if (removed.ok() || removed.status == ZookeeperStatus::no_node) {
    forget(id);
    co_return Outcome{.status = removed.ok() ? Status::released : Status::not_held};
  }
  co_return zookeeper_failure(removed);
}

}  // namespace holdfast::engines
