#include "engines/redis/redis_errors.h"

#include <algorithm>
#include <array>
#include <string>

namespace holdfast::engines {
namespace {

struct Known {
  std::string_view start;
  ErrorCode code;
  std::string_view text;
};

constexpr std::array kKnown{
    Known{"NOAUTH", ErrorCode::unauthorized, "Redis wants a password"},
    Known{"WRONGPASS", ErrorCode::unauthorized, "Redis does not accept the user or the password"},
    Known{"NOPERM", ErrorCode::unauthorized, "the Redis user lacks a right"},
    Known{"ERR invalid password", ErrorCode::unauthorized, "Redis does not accept the password"},
    Known{"ERR AUTH", ErrorCode::unauthorized, "Redis does not accept the password"},
    Known{"ERR Client sent AUTH", ErrorCode::unauthorized, "this Redis has no password"},
    Known{"DENIED", ErrorCode::unauthorized, "Redis runs in protected mode"},
    Known{"MOVED", ErrorCode::unsupported,
          "this is a Redis Cluster, which is not supported; name one server, or use sentinels"},
    Known{"ASK", ErrorCode::unsupported, "this is a Redis Cluster, which is not supported"},
    Known{"CROSSSLOT", ErrorCode::unsupported, "this is a Redis Cluster, which is not supported"},
    Known{"READONLY", ErrorCode::unavailable, "this Redis is a replica and takes no writes"},
    Known{"LOADING", ErrorCode::unavailable, "Redis is loading its data"},
    Known{"BUSY", ErrorCode::unavailable, "Redis is busy with somebody's script"},
    Known{"MASTERDOWN", ErrorCode::unavailable, "this Redis has lost its master"},
    Known{"NOREPLICAS", ErrorCode::unavailable, "Redis lacks the replicas it needs for writes"},
    Known{"OOM", ErrorCode::unavailable, "Redis has no memory left"},
    Known{"MISCONF", ErrorCode::unavailable, "Redis cannot write to its disk"},
    Known{"WRONGTYPE", ErrorCode::invalid_argument,
          "the key of this name is used for something else; choose another name or prefix"},
    Known{"ERR DB index", ErrorCode::invalid_argument, "Redis has no database of this number"},
    Known{"ERR max number of clients", ErrorCode::unavailable, "Redis has too many clients"},
};

constexpr std::array<std::string_view, 6> kPassing{"LOADING",    "BUSY ",    "MASTERDOWN",
                                                   "NOREPLICAS", "READONLY", "TRYAGAIN"};

}  // namespace

Error redis_error(std::string_view reply) {
  for (const Known& known : kKnown) {
    if (reply.starts_with(known.start)) {
      return {known.code, std::string{known.text} + " (" + std::string{reply.substr(0, 200)} + ")",
              std::nullopt};
    }
  }
  return {ErrorCode::unavailable, "Redis says: " + std::string{reply.substr(0, 300)}, std::nullopt};
}

bool is_passing(std::string_view reply) {
  return std::any_of(kPassing.begin(), kPassing.end(),
                     [&](std::string_view start) { return reply.starts_with(start); });
}

bool is_demoted(std::string_view reply) {
  return reply.starts_with("READONLY") || reply.starts_with("MASTERDOWN");
}

}  // namespace holdfast::engines
