#include <array>
#include <string>

#include "engine/registry.h"
#include "engines/memory/memory_engine.h"
#include "engines/sqlite/sqlite_engine.h"
#ifndef HOLDFAST_WITHOUT_ETCD
#include "engines/etcd/etcd_engine.h"
#endif
#ifndef HOLDFAST_WITHOUT_MYSQL
#include "engines/mysql/mysql_engine.h"
#endif
#ifndef HOLDFAST_WITHOUT_POSTGRES
#include "engines/postgres/postgres_engine.h"
#endif
#ifndef HOLDFAST_WITHOUT_REDIS
#include "engines/redis/redis_engine.h"
#include "engines/redlock/redlock_engine.h"
#endif
#ifndef HOLDFAST_WITHOUT_ZOOKEEPER
#include "engines/zookeeper/zookeeper_engine.h"
#endif

namespace holdfast::engine {

std::span<const Registration> registrations() {
  static const std::array all{
      engines::memory_registration(),         engines::sqlite_registration(),
#ifndef HOLDFAST_WITHOUT_MYSQL
      engines::mysql_registration(),
#endif
#ifndef HOLDFAST_WITHOUT_POSTGRES
      engines::postgres_registration(),       engines::postgresql_registration(),
#endif
#ifndef HOLDFAST_WITHOUT_REDIS
      engines::redis_registration(),          engines::rediss_registration(),
      engines::redis_sentinel_registration(), engines::redlock_registration(),
#endif
#ifndef HOLDFAST_WITHOUT_ZOOKEEPER
      engines::zookeeper_registration(),
#endif
#ifndef HOLDFAST_WITHOUT_ETCD
      engines::etcd_registration(),
#endif
  };
  return all;
}

Result<std::unique_ptr<Engine>> open(const Url& url, const EngineOptions& options) {
  std::string known;
  for (const Registration& registration : registrations()) {
    if (registration.scheme == url.scheme) {
      return registration.open(url, options);
    }
    known += (known.empty() ? "" : ", ") + std::string{registration.example};
  }
  return fail(ErrorCode::invalid_argument,
              "no store is called '" + url.scheme + "'; write one of: " + known);
}

}  // namespace holdfast::engine
