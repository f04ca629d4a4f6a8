#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/registry.h"
#include "support/commands.h"

// Talks to an engine without a client.
namespace holdfast::test {

// Opens a store as the session of that number; fails the test if it cannot.
std::unique_ptr<engine::Engine> open_engine(const std::string& url, std::uint32_t session = 1,
                                            std::function<base::Time()> now = nullptr);

// One batch, and its outcomes.
engine::Outcomes submit(engine::Engine& engine, const std::vector<core::Command>& batch);
core::Outcome submit(engine::Engine& engine, const std::string& name,
                     const core::Operation& operation);

// Until something else than a failure comes back: the line breaks, and the
// outcome may stay unknown for a while.
core::Outcome insist(engine::Engine& engine, const std::string& name,
                     const core::Operation& operation);

// Waits for the doorbell, generously; what it said, or nothing.
std::vector<engine::Ring> wait_for_ring(engine::Engine& engine);

}  // namespace holdfast::test
