// strategy=simple: the lock is one ephemeral node. All who wait watch it, and
// all of them try when it goes.
//
// Its name does not say whose it is, and a delete cannot ask: sent again, or
// late, it would hit the next holder's. So whoever has or wants the lock wears
// a badge, a node named after the request. The lock is taken and given back
// together with it in one step: without its badge a request removes nothing.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <algorithm>

#include "engine/batch.h"
#include "engines/zookeeper/zookeeper_recipe.h"

namespace holdfast::engines {

using core::Outcome;
using core::Status;

namespace {

using What = ZookeeperOperation::What;

bool is_gone(const ZookeeperReply& reply) {
  return reply.status == ZookeeperStatus::no_node;
}

bool names(const ZookeeperReply& node, const core::RequestId& id) {
  const auto note = PartyNote::parse(node.text);
  return node.ok() && note && note->guid == guid_of(id);
}

}  // namespace

// "<root>/%waiting/<lock>%<id>": no lock is called that, a % is followed by two
// digits in all their names.
std::string ZookeeperRecipe::badge_of(const std::string& dir, const std::string& guid) const {
  std::string lock = dir.substr(options_.root.size() + 1);
  std::ranges::replace(lock, '/', '%');
  return badges() + "/" + lock + "%" + guid;
}

engine::Task<bool> ZookeeperRecipe::put_on_badge(core::RequestId id, std::string dir) {
  const std::string badge = badge_of(dir, guid_of(id));
  const ZookeeperReply made =
      co_await session_->create(badge, note_text(id, 1, 0), ZookeeperMode::ephemeral);
  const bool perhaps = made.ok() || made.status == ZookeeperStatus::node_exists ||
                       made.status == ZookeeperStatus::outcome_unknown;
  const bool worn = perhaps && change(id, [&](Place& place) { place.badge = badge; });
  if (perhaps && !worn) {
    abandon(id, {.dir = std::move(dir), .shape = {}, .badge = badge});
  }
  co_return worn;
}

// Without that of the holder.
engine::Task<std::vector<std::string>> ZookeeperRecipe::badges_of(std::string dir,
                                                                  std::string holder) {
  const std::string own = badge_of(dir, holder);
  const std::string start = badge_of(dir, "").substr(badges().size() + 1);
  const ZookeeperReply all = co_await session_->children(badges());
  std::vector<std::string> found;
  for (const std::string& child : all.children) {
    std::string badge = badges() + "/" + child;
    if (child.rfind('%') + 1 == start.size() && child.starts_with(start) && badge != own) {
      found.push_back(std::move(badge));
    }
  }
  co_return found;
}

// It does not hold, as far as is known.
engine::Task<Outcome> ZookeeperRecipe::leave_simple(core::RequestId id, Place place) {
  ZookeeperPair both{session_->sync(place.dir), session_->get(place.dir)};
  const auto [synced, there] = co_await both;
  if (!synced.ok() || (!there.ok() && !is_gone(there))) {
    co_return zookeeper_failure(synced.ok() ? there : synced);
  }
  if (names(there, id)) {
    co_return co_await give_back_simple(id, place.dir);
  }
  if (place.badge.empty()) {
    forget(id);
    co_return engine::plain(Status::not_held);
  }
  const ZookeeperReply removed = co_await session_->remove(place.badge);
  if (!removed.ok() && !is_gone(removed)) {
    co_return zookeeper_failure(removed);
  }
  forget(id);
  co_return engine::plain(Status::released);
}

engine::Task<Outcome> ZookeeperRecipe::give_back_simple(core::RequestId id, std::string dir) {
  std::string badge = badge_of(dir, guid_of(id));
  std::vector<ZookeeperOperation> steps;
  steps.push_back({.what = What::remove, .path = badge});
  steps.push_back({.what = What::remove, .path = dir});
  const ZookeeperReply removed = co_await session_->multi(std::move(steps));
  if (!removed.ok() && !is_gone(removed)) {
    co_return zookeeper_failure(removed);
  }
  forget(id);
  if (is_gone(removed)) {  // perhaps the lock's node alone, by force
    co_return abandon(id, {.dir = std::move(dir), .shape = {}, .badge = std::move(badge)});
  }
  co_return engine::plain(Status::released);
}

// The lock's node is there, and ours.
engine::Task<Outcome> ZookeeperRecipe::enter_simple(std::string dir, Step step,
                                                    std::int64_t czxid) {
  const auto token = zookeeper_token(czxid);
  const bool wanted = change(step.id, [&](Place& place) {
    place.path = dir;
    place.badge = badge_of(dir, guid_of(step.id));
    place.token = token.value_or(0);
  });
  if (!wanted) {  // given up while it was made
    std::string badge = badge_of(dir, guid_of(step.id));
    co_return abandon(step.id, {.dir = dir, .shape = {}, .path = dir, .badge = std::move(badge)});
  }
  if (!token) {
    const Error used_up{ErrorCode::unavailable, "this ensemble has used up its tokens", {}};
    Outcome outcome{.status = Status::failed, .error = used_up};
    co_return co_await leave(step.id, std::move(outcome));
  }
  co_return granted(step.id, step.started);
}

engine::Task<ZookeeperReply> ZookeeperRecipe::make_parents_simple(std::string dir) {
  LockNote of_badges;
  ZookeeperReply made = co_await make_lock(badges(), std::move(of_badges));
  std::string above = dir.substr(0, dir.rfind('/'));
  if (made.ok() && !above.empty()) {
    LockNote of_lock;
    made = co_await make_lock(std::move(above), std::move(of_lock));
  }
  co_return made;
}

// NOLINTNEXTLINE(readability-function-size): the recipe, step by step
engine::Task<Outcome> ZookeeperRecipe::take_simple(std::string dir, Step step) {
  std::string badge = badge_of(dir, guid_of(step.id));
  for (;;) {
    const auto place = find(step.id);
    if (!place || place->ending) {
      co_return engine::plain(Status::not_held);
    }
    const bool worn = !place->badge.empty();
    const std::string note = note_text(step.id, 1, 0);
    constexpr auto kMode = ZookeeperMode::ephemeral;
    std::vector<ZookeeperOperation> steps;
    steps.push_back({.what = What::create, .path = dir, .data = note, .mode = kMode});
    steps.push_back(
        {.what = worn ? What::check : What::create, .path = badge, .data = note, .mode = kMode});
    ZookeeperPair both{session_->multi(std::move(steps)), session_->get(dir)};
    const auto [made, there] = co_await both;
    // Also by an earlier step whose answer was lost; not by a session that we gave up.
    if (names(there, step.id) && there.owner == session_->id()) {
      co_return co_await enter_simple(std::move(dir), step, there.czxid);
    }
    if (is_gone(made)) {  // the badge, or what they stand in
      change(step.id, [](Place& known) { known.badge.clear(); });
      const ZookeeperReply parents = co_await make_parents_simple(dir);
      if (!parents.ok()) {
        forget(step.id);
        co_return zookeeper_failure(parents);
      }
      continue;
    }
    if (!made.ok() && made.status != ZookeeperStatus::node_exists) {
      co_return zookeeper_failure(made);
    }
    if (!there.ok() && !is_gone(there)) {
      co_return zookeeper_failure(there);
    }
    if (is_gone(there)) {
      // Given back just now; or a badge was in the way that we did not know of.
      if (made.results.back() == ZookeeperStatus::node_exists) {
        co_await session_->remove(badge);
      }
      continue;
    }
    if (!step.queue && worn) {
      co_return co_await leave(step.id, engine::plain(Status::busy));
    }
    if (!step.queue) {
      forget(step.id);
      co_return engine::plain(Status::busy);
    }
    watch_for(dir, step.id);
    const ZookeeperReply watched = co_await session_->get(dir, true);
    if (is_gone(watched)) {
      continue;
    }
    if (!watched.ok()) {
      co_return zookeeper_failure(watched);
    }
    if (!worn) {
      co_await put_on_badge(step.id, std::move(dir));
    }
    co_return queued(step.id, step.beat ? step.started : base::Time{}, 0);
  }
}

}  // namespace holdfast::engines
