// What is held is prolonged: a look at every node, decided by a quorum.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <algorithm>

#include "engines/zookeeper/zookeeper_recipe.h"

namespace holdfast::engines {

using core::Status;

engine::Task<engine::Outcomes> ZookeeperRecipe::renew(std::vector<core::RequestId> ids) {
  const base::Time started = base::BootClock::now();
  engine::Outcomes outcomes(ids.size(), {.status = Status::not_held});
  std::vector<ZookeeperOperation> checks;
  std::vector<std::size_t> owners;  // of each check
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto place = find(ids[i]);
    if (!place || place->ending || !place->held) {
      continue;
    }
    for (const std::string& path : title(*place)) {
      // A revocation is a write to the node.
      checks.push_back({.path = path, .version = 0});
      owners.push_back(i);
    }
    outcomes[i] = {.status = Status::renewed, .token = place->token, .lease_for = lease()};
  }
  if (checks.empty()) {
    co_return outcomes;
  }
  const std::size_t count = checks.size();
  const ZookeeperReply checked = co_await session_->multi(std::move(checks));
  if (!checked.ok() && checked.results.size() == count && count > 1 &&
      (checked.status == ZookeeperStatus::no_node ||
       checked.status == ZookeeperStatus::bad_version)) {
    // One of them is not what it was, and the server stopped there: each on its own.
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::vector<core::RequestId> one{ids[i]};
      if (ids.size() > 1) {
        auto single = co_await renew(std::move(one));
        outcomes[i] = single.front();
      } else {
        outcomes[i].status =
            checked.status == ZookeeperStatus::bad_version ? Status::revoked : Status::not_held;
      }
    }
    co_return outcomes;
  }
  for (const std::size_t owner : owners) {
    if (checked.ok()) {
      bool lives = false;  // its time may have come meanwhile
      change(ids[owner], [&](Place& place) {
        lives = !place.ending;
        place.beat = std::max(place.beat, started);
      });
      outcomes[owner].status = lives ? Status::renewed : Status::not_held;
    } else if (checked.status == ZookeeperStatus::no_node) {
      forget(ids[owner]);
      outcomes[owner] = {.status = Status::not_held};
    } else if (checked.status == ZookeeperStatus::bad_version) {
      outcomes[owner].status = Status::revoked;
    } else {
      outcomes[owner] = zookeeper_failure(checked);
    }
  }
  co_return outcomes;
}

}  // namespace holdfast::engines
