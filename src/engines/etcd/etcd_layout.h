#pragma once

#include <holdfast/error.h>
#include <holdfast/inspect.h>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/commands.h"
#include "engines/etcd/etcd_options.h"
#include "engines/etcd/etcd_wire.h"

// Keys, and what stands in them: "<prefix><name>/<lease>-<request>", the layout
// of etcd's own concurrency package with our request id behind the lease.
// Whoever was created first holds. Pure.
namespace holdfast::engines {

// "<prefix><name>/". invalid_argument if a verbatim name cannot be one.
Result<std::string> etcd_directory(const EtcdOptions& options, std::string_view name);
// "<prefix>%values/<name>", and where its hold-off is. No lock is called so.
std::string etcd_value_key(const EtcdOptions& options, std::string_view name);
std::string etcd_hold_off_key(const EtcdOptions& options, std::string_view name);
// "<prefix>%gone/<request>": stands for as long as the request's lease does if
// its key must never come, because it was released before it was known to be there.
std::string etcd_gone_key(const EtcdOptions& options, const core::RequestId& id);
std::string etcd_unescaped(std::string_view name);
// The name of the lock that this key belongs to; nullopt: it is none of ours.
std::optional<std::string> etcd_name(const EtcdOptions& options, std::string_view key);
std::string etcd_key(std::string_view directory, std::int64_t lease, const core::RequestId& id);
std::string etcd_directory_of(std::string_view key);  // that it is in
// The request that an own key belongs to; nullopt for strangers.
std::optional<core::RequestId> etcd_request_of(std::string_view key);

// What a key's value says.
struct EtcdNote {
  Party party;
  core::Shape shape;
  std::int64_t since_ms = 0;  // by its owner's clock
  bool revoked = false;
  bool granted = false;  // holds, whatever the total has become
  bool ours = true;
  // Of a grant that changed while it lasted:
  std::uint64_t token = 0;  // 0: by its creation
  // Waits to become the writer: who was created up to here reads on, nobody else.
  std::int64_t readers_until = 0;
  std::optional<core::RequestId> request = std::nullopt;  // whom it was handed to

  std::string text() const;
  static EtcdNote parse(std::string_view text);  // strangers hold exclusively
};

}  // namespace holdfast::engines
