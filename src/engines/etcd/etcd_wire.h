#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The few messages of etcd's version 3 protocol that a lock needs, in protobuf's
// encoding. Pure.
namespace holdfast::engines {

struct EtcdKey {
  std::string key;
  std::string value;
  std::int64_t create_revision = 0;
  std::int64_t mod_revision = 0;
  std::int64_t lease = 0;
};

// The end of the range of all keys with this prefix.
std::string etcd_prefix_end(std::string prefix);

// --- requests

struct EtcdCompare {
  enum class Target : std::uint8_t { create = 1, mod = 2, lease = 4 };
  enum class Is : std::uint8_t { equal = 0, greater = 1, less = 2 };
  std::string key = {};
  std::string end = {};  // all keys from `key` to here
  Target target = Target::create;
  Is is = Is::equal;
  std::int64_t revision = 0;  // or the lease
};

struct EtcdOperation {
  enum class What : std::uint8_t { range = 1, put = 2, remove = 3 };
  What what = What::range;
  std::string key = {};
  std::string end = {};    // range: all keys from `key` to here, in the order of their creation
  std::string value = {};  // put
  std::int64_t lease = 0;
  bool keep_lease = false;  // put: the lease that it has
  bool keys_only = false;
};

struct EtcdTransaction {
  std::vector<EtcdCompare> compares;
  std::vector<EtcdOperation> success;
  std::vector<EtcdOperation> failure;
};

std::string encode(const EtcdTransaction& transaction);
// Several as one, each with compares of its own. They are judged by what was there before all
// of them, so no two may be about the same keys. Each has a compare at least.
std::string encode_together(const std::vector<const EtcdTransaction*>& transactions);
std::string encode_range(const EtcdOperation& range);
std::string encode_grant(std::int64_t seconds);
std::string encode_lease(std::int64_t lease);  // revoke, keep alive, time to live
std::string encode_login(std::string_view user, std::string_view password);
// Events from now on: of a key, or of all below if it ends in a slash.
enum class EtcdEvents : std::uint8_t { all, ends };
std::string encode_watch(std::int64_t id, std::string_view key, EtcdEvents events);
std::string encode_unwatch(std::int64_t id);

// --- answers; nullopt: not what it should be

// Every answer's: the term of its member's leader. Two answers of one term had
// the same leader in between.
struct EtcdRange {
  std::int64_t revision = 0;
  std::uint64_t term = 0;  // 0: not said
  std::vector<EtcdKey> keys;
};
std::optional<EtcdRange> decode_range(std::string_view bytes);

struct EtcdTransactionAnswer {
  std::int64_t revision = 0;
  bool succeeded = false;
  struct Part {
    std::vector<EtcdKey> keys;  // range
    std::int64_t deleted = 0;   // remove
  };
  std::vector<Part> parts;  // one an operation
};
std::optional<EtcdTransactionAnswer> decode_transaction(std::string_view bytes);
// One each, in the order in which they were sent together.
std::optional<std::vector<EtcdTransactionAnswer>> decode_together(std::string_view bytes);

struct EtcdLease {
  std::int64_t id = 0;
  std::int64_t ttl = 0;  // seconds; none or less: it is over
  std::int64_t granted = 0;
  std::uint64_t term = 0;  // of before
};
std::optional<EtcdLease> decode_lease(std::string_view bytes);

struct EtcdWatchNews {
  std::int64_t id = 0;
  std::int64_t revision = 0;  // if it was created: it sees what comes after this
  bool created = false;
  bool cancelled = false;
  std::size_t events = 0;
  std::vector<EtcdKey> ended;  // keys that are gone, by their mod_revision
};
std::optional<EtcdWatchNews> decode_watch(std::string_view bytes);

std::optional<std::string> decode_token(std::string_view bytes);

struct EtcdStatus {
  std::string version;
  std::uint64_t member = 0;
  std::uint64_t leader = 0;
};
std::optional<EtcdStatus> decode_status(std::string_view bytes);

}  // namespace holdfast::engines
