// What became of a node whose making was not answered.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include "engines/zookeeper/zookeeper_recipe.h"

namespace holdfast::engines {

using core::Outcome;
using core::Status;

// A create whose answer was lost: is our node there? False: it is not, and the
// place is given up; or nobody could say, and the place stays.
engine::Task<bool> ZookeeperRecipe::recall(core::RequestId id) {
  const auto place = find(id);
  if (!place) {
    co_return false;
  }
  const bool permits = place->shape.mode == Mode::permits;
  const std::string dir = permits ? place->dir + "/locks" : place->dir;
  const std::string leases_dir = place->dir + "/leases";
  ZookeeperPair both{session_->sync(place->dir), session_->children(dir)};
  auto [synced, listed] = co_await both;
  ZookeeperReply held;
  held.status = ZookeeperStatus::no_node;
  if (permits) {
    held = co_await session_->children(leases_dir);
  }
  for (const ZookeeperReply* reply : {&listed, &held}) {
    if (!synced.ok() || (!reply->ok() && reply->status != ZookeeperStatus::no_node)) {
      co_return false;
    }
  }
  Recalled found;
  for (const std::string* parent : {&dir, &leases_dir}) {
    const auto& children = parent == &dir ? listed.children : held.children;
    for (const LockNode& node : lock_nodes(options_.layout, children)) {
      if (node.guid == guid_of(id)) {
        std::string path = *parent + "/" + node.name;
        const bool heard = co_await recall_node(std::move(path), found);
        if (!heard) {
          co_return false;
        }
      }
    }
  }
  if (found.path.empty() && found.leases.empty()) {
    forget(id);
    co_return false;
  }
  change(id, [&](Place& known) {
    known.path = found.path;
    known.leases = found.leases;
    known.token = found.token;
  });
  co_return true;
}

// A node with our guid: of this session, or of one that we gave up? False: nobody could say.
engine::Task<bool> ZookeeperRecipe::recall_node(std::string path, Recalled& found) {
  const ZookeeperReply node = co_await session_->get(path);
  if (node.status == ZookeeperStatus::no_node) {
    co_return true;
  }
  if (!node.ok()) {
    co_return false;
  }
  if (node.owner != session_->id()) {
    co_return true;
  }
  const auto note = PartyNote::parse(node.text);
  const bool is_lease = note && note->token != 0;
  const auto token = is_lease ? std::optional{note->token} : zookeeper_token(node.czxid);
  if (!token) {
    co_return false;
  }
  found.token = *token;
  if (is_lease) {
    found.leases.push_back(std::move(path));
  } else {
    found.path = std::move(path);
  }
  co_return true;
}

}  // namespace holdfast::engines
