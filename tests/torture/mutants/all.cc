// In place of src/engines/all.cc: sqlite alone, and wrong as HOLDFAST_MISTAKE
// says.

#include <array>
#include <cstdlib>

#include "engine/registry.h"
#include "engines/sqlite/sqlite_engine.h"
#include "torture/mutants/wrong_engine.h"

namespace holdfast::engine {

std::span<const Registration> registrations() {
  static const std::array all{engines::sqlite_registration()};
  return all;
}

Result<std::unique_ptr<Engine>> open(const Url& url, const EngineOptions& options) {
  auto engine = engines::sqlite_registration().open(url, options);
  const char* mistake = std::getenv("HOLDFAST_MISTAKE");
  if (!engine || mistake == nullptr) {
    return engine;
  }
  return test::make_wrong(std::move(*engine), mistake);
}

}  // namespace holdfast::engine
