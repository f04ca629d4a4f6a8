#include "engine/engine.h"

namespace holdfast::engine {
namespace {

tl::unexpected<Error> no_database(const Capabilities& capabilities) {
  return fail(ErrorCode::unsupported,
              capabilities.engine +
                  " keeps its locks in no database where your data could be; "
                  "postgres and mysql do");
}

}  // namespace

Result<std::string> Engine::fence_sql(std::string_view, std::uint64_t) {
  return no_database(capabilities());
}

Result<void> Engine::guard(std::string_view, std::uint64_t, const NativeConnection&, AfterGuard) {
  return no_database(capabilities());
}

Result<std::string> Engine::store_id() {
  return fail(ErrorCode::unsupported,
              capabilities().engine +
                  " keeps no id of its store, so locks of several stores cannot be ordered; "
                  "sqlite, mysql, postgres and redis do");
}

}  // namespace holdfast::engine
