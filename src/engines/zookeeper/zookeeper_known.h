#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "engines/zookeeper/zookeeper_joint.h"
#include "engines/zookeeper/zookeeper_layout.h"

namespace holdfast::engines {

// What locks' nodes said when they were last read: a few thousand, in a table that never
// grows, because names may come and never come again. It is only believed where the store
// says that the node is still the same (czxid, version), so names are known by their hash.
// Not thread-safe.
class KnownLocks {
 public:
  struct Known {
    std::size_t hash = 0;
    std::int64_t czxid = 0;  // zero: nothing is known
    std::int32_t version = 0;
    std::int32_t changes = 0;  // among its children, after a release of ours
    std::uint32_t limit = 0;
    LockNote::Kind kind = LockNote::Kind::none;
    bool has_changes = false;
    bool has_more = false;  // it names revoked holders, which are not kept here

    LockNote note() const { return {.kind = kind, .limit = limit}; }
    bool is_all_of(std::int64_t that, std::int32_t of_version) const {
      return czxid == that && version == of_version && !has_more;
    }
    ZookeeperJoint::Seen seen() const {
      return has_changes ? ZookeeperJoint::Seen{.czxid = czxid, .changes = changes}
                         : ZookeeperJoint::Seen{};
    }
  };

  // Null if it is not known; good until the next put().
  Known* find(std::string_view dir) {
    Known& place = place_of(hash_of(dir));
    return place.czxid != 0 && place.hash == hash_of(dir) ? &place : nullptr;
  }

  void put(std::string_view dir, std::int64_t czxid, std::int32_t version, const LockNote& note) {
    Known& place = place_of(hash_of(dir));
    place = {.hash = hash_of(dir),
             .czxid = czxid,
             .version = version,
             .limit = note.limit,
             .kind = note.kind,
             .has_more = !note.revoked.empty()};
  }

 private:
  static constexpr std::size_t kPlaces = 8192;
  static constexpr std::size_t kNear = 8;

  static std::size_t hash_of(std::string_view dir) { return std::hash<std::string_view>{}(dir); }

  // Its own, or a free one nearby, or the first, whose owner is forgotten.
  Known& place_of(std::size_t hash) {
    Known* room = nullptr;
    for (std::size_t i = 0; i < kNear; ++i) {
      Known& place = places_[(hash + i) % kPlaces];
      if (place.hash == hash) {
        return place;
      }
      if (room == nullptr && place.czxid == 0) {
        room = &place;
      }
    }
    return room != nullptr ? *room : places_[hash % kPlaces];
  }

  std::vector<Known> places_ = std::vector<Known>(kPlaces);
};

}  // namespace holdfast::engines
