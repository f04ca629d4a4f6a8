#pragma once

#include <holdfast/inspect.h>
#include <holdfast/own_row.h>
#include <memory>
#include <span>
#include <string_view>

#include "engine/engine.h"

namespace holdfast::engine {

struct Registration {
  std::string_view scheme;
  std::string_view example;  // a URL to show in messages
  EngineFactory open = nullptr;
  // One entry a strategy: rows of the capability table.
  std::span<const Capabilities> (*capabilities)() = nullptr;
  // SQL: changes a row of the user's own, if it has that version, on a
  // connection of the vendor's type. False: it has not.
  Result<bool> (*update_row)(void* connection, const RowUpdate& update) = nullptr;
};

// All engines that were built in, in the order of the documentation.
std::span<const Registration> registrations();

// invalid_argument for an unknown scheme, naming the known ones.
Result<std::unique_ptr<Engine>> open(const Url& url, const EngineOptions& options);

}  // namespace holdfast::engine
