#pragma once

#include <holdfast/error.h>
#include <holdfast/inspect.h>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/commands.h"
#include "engines/zookeeper/zookeeper_options.h"

// Where things stand and what they are called: the node names of Curator and
// kazoo, and what we write into nodes. Pure.
namespace holdfast::engines {

// --- a lock's name as a path below the root

// invalid_argument where names are verbatim and this one is no path.
Result<std::string> zookeeper_path(const ZookeeperOptions& options, std::string_view name);
// The name of a child of the root.
std::string zookeeper_name(const ZookeeperOptions& options, std::string_view child);

// --- those who want a lock, as children of its node

enum class NodeKind { mutex, reader, writer, lease };

struct LockNode {
  std::string name;  // of the child
  NodeKind kind = NodeKind::mutex;
  std::int32_t sequence = 0;
  std::string guid;  // 32 hex digits, or what was found in their place
};

// "_c_<uuid>-lock-": the server appends the number.
std::string node_prefix(ZookeeperOptions::Layout layout, NodeKind kind, const core::RequestId& id);
std::string guid_of(const core::RequestId& id);

// Those of the children that take part, in order.
std::vector<LockNode> lock_nodes(ZookeeperOptions::Layout layout,
                                 const std::vector<std::string>& children);

struct Standing {
  bool found = false;
  bool holds = false;
  std::uint32_t ahead = 0;
  std::string blocker = {};  // the child to watch
};
// Among mutex, reader and writer nodes; `own` is the name of one of them. By its
// name, because a session that we gave up may have left a node of the same guid.
Standing standing_of(const std::vector<LockNode>& nodes, std::string_view own);

// --- what a lock's node records

struct LockNote {
  enum class Kind { none, either, mutex, read_write, semaphore };
  Kind kind = Kind::none;
  std::uint32_t limit = 0;                // a semaphore's total
  std::vector<std::string> revoked = {};  // guids

  bool is_revoked(std::string_view guid) const;
  std::string text() const;
  static LockNote parse(std::string_view text);  // what others wrote says nothing
};

// --- what a participant's node says about its owner

struct PartyNote {
  Party party;
  std::uint32_t permits = 1;
  std::uint64_t token = 0;  // of a lease node: that of the grant
  bool revoked = false;
  std::string guid = {};

  std::string text() const;
  static std::optional<PartyNote> parse(std::string_view text);  // nullopt: not ours
};

}  // namespace holdfast::engines
