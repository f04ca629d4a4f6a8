#include "engine/engine.h"

namespace holdfast::engine {
namespace {

tl::unexpected<Error> no_database(const Capabilities& capabilities) {
  return fail(ErrorCode::unsupported,
              capabilities.engine +
                  " keeps its locks in no database where your data could be; "
                  "postgres and mysql do");
}

tl::unexpected<Error> no_values(const Capabilities& capabilities) {
  std::string name = capabilities.engine;
  if (!capabilities.strategy.empty()) {
    name += " with strategy=" + capabilities.strategy;
  }
  return fail(ErrorCode::unsupported, name + " keeps no values with versions; sqlite does");
}

}  // namespace

Result<std::optional<core::Value>> Engine::load_value(std::string_view) {
  return no_values(capabilities());
}

Result<core::ValueOutcome> Engine::write_value(const core::ValueWrite&) {
  return no_values(capabilities());
}

Result<std::vector<core::NamedValue>> Engine::list_values(std::string_view) {
  return no_values(capabilities());
}

Result<std::string> Engine::fence_sql(std::string_view, std::uint64_t) {
  return no_database(capabilities());
}

Result<void> Engine::guard(std::string_view, std::uint64_t, const NativeConnection&, AfterGuard) {
  return no_database(capabilities());
}

}  // namespace holdfast::engine
