// What a lock's own node says of it, and what of that is known here.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <algorithm>

#include "engines/zookeeper/zookeeper_recipe.h"

namespace holdfast::engines {
namespace {

std::string parent_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

}  // namespace

// What a node of ours is called depends on who else uses the lock.
NodeKind ZookeeperRecipe::kind_for(const core::Shape& shape, const LockNote& note,
                                   const std::vector<LockNode>& others) const {
  if (shape.mode == Mode::shared) {
    return NodeKind::reader;
  }
  if (options_.layout == ZookeeperOptions::Layout::kazoo ||
      options_.kind == ZookeeperOptions::Kind::read_write) {
    return NodeKind::writer;
  }
  if (options_.kind == ZookeeperOptions::Kind::mutex) {
    return NodeKind::mutex;
  }
  // A lock that Java made says nothing; its users do.
  const bool readers_and_writers =
      note.kind == LockNote::Kind::none && std::ranges::any_of(others, [](const LockNode& node) {
        return node.kind == NodeKind::reader || node.kind == NodeKind::writer;
      });
  return note.kind == LockNote::Kind::read_write || readers_and_writers ? NodeKind::writer
                                                                        : NodeKind::mutex;
}

LockNote::Kind ZookeeperRecipe::fresh_kind(const core::Shape& shape) const {
  if (shape.mode == Mode::permits) {
    return LockNote::Kind::semaphore;
  }
  if (options_.kind == ZookeeperOptions::Kind::mutex) {
    return LockNote::Kind::mutex;
  }
  return shape.mode == Mode::shared || options_.kind == ZookeeperOptions::Kind::read_write
             ? LockNote::Kind::read_write
             : LockNote::Kind::either;
}

LockNote ZookeeperRecipe::known_note(const std::string& dir) {
  const std::lock_guard lock{mutex_};
  const auto* known = known_.find(dir);
  return known == nullptr ? LockNote{} : known->note();
}

bool ZookeeperRecipe::is_known(const std::string& dir) {
  const std::lock_guard lock{mutex_};
  return known_.find(dir) != nullptr;
}

// Read again only if the list shows that it is not what we know.
engine::Task<LockNote> ZookeeperRecipe::note_of(std::string dir, std::int64_t czxid,
                                                std::int32_t version) {
  {
    const std::lock_guard lock{mutex_};
    const auto* known = known_.find(dir);
    if (known != nullptr && known->is_all_of(czxid, version)) {
      co_return known->note();
    }
  }
  const ZookeeperReply got = co_await session_->get(dir);
  LockNote note = LockNote::parse(got.text);
  if (got.ok()) {
    remember(dir, got, note);
  }
  co_return note;
}

void ZookeeperRecipe::remember(const std::string& dir, const ZookeeperReply& node,
                               const LockNote& note) {
  const std::lock_guard lock{mutex_};
  known_.put(dir, node.czxid, node.version, note);
}

ZookeeperJoint::Seen ZookeeperRecipe::seen(const std::string& dir) {
  const std::lock_guard lock{mutex_};
  const auto* known = known_.find(dir);
  return known == nullptr ? ZookeeperJoint::Seen{} : known->seen();
}

// It was made, seen in the list and removed, in this order: if nobody else came or went
// since it was seen, the list has changed once.
void ZookeeperRecipe::note_release(const Place& place) {
  const std::lock_guard lock{mutex_};
  auto* known = known_.find(place.dir);
  if (known != nullptr && known->czxid == place.seen.czxid) {
    known->changes = place.seen.changes + 1;
    known->has_changes = true;
  }
}

// The lock's own node, and those above it, which vanish by themselves some
// time after the last child.
engine::Task<ZookeeperReply> ZookeeperRecipe::make_lock(std::string dir, LockNote note) {
  ZookeeperReply made = co_await session_->create(dir, note.text(), ZookeeperMode::container);
  if (made.ok()) {
    remember(dir, made, note);
  }
  if (made.status == ZookeeperStatus::no_node) {
    const std::string above = parent_of(dir);
    if (above.empty()) {
      co_return made;
    }
    LockNote nothing;
    made = co_await make_lock(above, std::move(nothing));
  }
  if (made.status == ZookeeperStatus::node_exists) {
    made.status = ZookeeperStatus::ok;
  }
  co_return made;
}

engine::Task<bool> ZookeeperRecipe::is_semaphore_used(std::string dir,
                                                      std::vector<std::string> children) {
  if (std::ranges::find(children, "leases") == children.end() ||
      options_.layout != ZookeeperOptions::Layout::curator) {
    co_return false;
  }
  ZookeeperPair both{session_->children(dir + "/leases"), session_->children(dir + "/locks")};
  const auto [leases, locks] = co_await both;
  co_return !leases.children.empty() || !locks.children.empty();
}

}  // namespace holdfast::engines
