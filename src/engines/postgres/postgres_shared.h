#pragma once

#include <optional>

#include "engine/engine.h"
#include "engines/postgres/postgres_options.h"
#include "engines/postgres/postgres_sql.h"
#include "engines/postgres/postgres_values.h"

namespace holdfast::engines::postgres {

// What the parts of one engine share.
struct Shared {
  Options options;
  LeaseSql sql;
  engine::EngineOptions client;

  Bytes test_time() const { return client.now ? Bytes{binary(client.now())} : std::nullopt; }
};

}  // namespace holdfast::engines::postgres
