// strategy=simple: the lock is one ephemeral node. All who wait watch it, and
// all of them try when it goes.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include "engines/zookeeper/zookeeper_recipe.h"

namespace holdfast::engines {

using core::Outcome;
using core::Status;

namespace {

// "<root>/%waiting/<lock>%<id>": no lock is called that, a % is followed by two
// digits in all their names. Of no use but for people who look.
std::string child_of(const std::string& dir) {
  return dir.substr(dir.rfind('/') + 1);
}

}  // namespace

engine::Task<bool> ZookeeperRecipe::put_on_badge(core::RequestId id, std::string dir) {
  const std::string badge = badges() + "/" + child_of(dir) + "%" + guid_of(id);
  ZookeeperReply made =
      co_await session_->create(badge, note_text(id, 1, 0), ZookeeperMode::ephemeral);
  if (made.status == ZookeeperStatus::no_node) {
    LockNote nothing;
    made = co_await make_lock(badges(), std::move(nothing));
    made = co_await session_->create(badge, note_text(id, 1, 0), ZookeeperMode::ephemeral);
  }
  const bool worn = made.ok() && change(id, [&](Place& place) { place.badge = badge; });
  if (made.ok() && !worn) {
    take_off_badge(badge);
  }
  co_return worn;
}

engine::Detached ZookeeperRecipe::take_off_badge(std::string badge) {
  co_await session_->remove(std::move(badge));
}

engine::Task<std::vector<std::string>> ZookeeperRecipe::badges_of(std::string dir) {
  const std::string start = child_of(dir) + "%";
  const ZookeeperReply all = co_await session_->children(badges());
  std::vector<std::string> found;
  for (const std::string& child : all.children) {
    if (child.rfind('%') + 1 == start.size() && child.starts_with(start)) {
      found.push_back(child);
    }
  }
  co_return found;
}

// It does not hold, as far as is known.
engine::Task<Outcome> ZookeeperRecipe::leave_simple(core::RequestId id, Place place) {
  const ZookeeperReply there = co_await session_->get(place.dir);
  const auto note = PartyNote::parse(there.text);
  const bool mine = there.ok() && note && note->guid == guid_of(id);
  if (!there.ok() && there.status != ZookeeperStatus::no_node) {
    co_return zookeeper_failure(there);
  }
  std::string node = mine ? place.dir : place.badge;
  if (node.empty()) {
    forget(id);
    co_return plain(Status::not_held);
  }
  const ZookeeperReply removed = co_await session_->remove(std::move(node));
  if (!removed.ok() && removed.status != ZookeeperStatus::no_node) {
    co_return zookeeper_failure(removed);
  }
  forget(id);
  co_return plain(Status::released);
}

engine::Task<Outcome> ZookeeperRecipe::take_simple(std::string dir, Step step) {
  for (;;) {
    const ZookeeperReply made =
        co_await session_->create(dir, note_text(step.id, 1, 0), ZookeeperMode::ephemeral);
    if (made.ok()) {
      const auto token = zookeeper_token(made.czxid);
      std::string badge;
      change(step.id, [&](Place& place) {
        place.path = dir;
        place.token = token.value_or(0);
        badge.swap(place.badge);
      });
      if (!badge.empty()) {
        take_off_badge(std::move(badge));
      }
      if (!token) {
        const Error used_up{ErrorCode::unavailable, "this ensemble has used up its tokens", {}};
        Outcome outcome{.status = Status::failed, .error = used_up};
        co_return co_await leave(step.id, std::move(outcome));
      }
      co_return granted(step.id, step.started);
    }
    if (made.status == ZookeeperStatus::no_node) {
      LockNote nothing;
      const ZookeeperReply root = co_await make_lock(options_.root, std::move(nothing));
      if (!root.ok()) {
        forget(step.id);
        co_return zookeeper_failure(root);
      }
      continue;
    }
    if (made.status != ZookeeperStatus::node_exists) {
      co_return zookeeper_failure(made);
    }
    watch_for(dir, step.id);
    const ZookeeperReply there = co_await session_->get(dir, step.queue);
    if (there.status == ZookeeperStatus::no_node) {
      continue;
    }
    if (!there.ok()) {
      co_return zookeeper_failure(there);
    }
    const auto note = PartyNote::parse(there.text);
    // An earlier create whose answer was lost; not one of a session that we gave up.
    if (note && note->guid == guid_of(step.id) && there.owner == session_->id()) {
      change(step.id, [&](Place& place) {
        place.path = dir;
        place.token = zookeeper_token(there.czxid).value_or(0);
      });
      co_return granted(step.id, step.started);
    }
    if (!step.queue) {
      forget(step.id);
      co_return plain(Status::busy);
    }
    if (const auto place = find(step.id); place && place->badge.empty()) {
      co_await put_on_badge(step.id, dir);
    }
    co_return queued(step.id, step.beat ? step.started : base::Time{}, 0);
  }
}

}  // namespace holdfast::engines
