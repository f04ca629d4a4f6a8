#pragma once

#include <cstdint>
#include <string>

#include "core/commands.h"

// The trace's words, and the ids it can read.
namespace holdfast::sim {

// Ids that tell who made them: process, incarnation, number.
base::Id make_id(int process, int incarnation, std::uint32_t number);

std::string words(const base::Id& id);
std::string words(base::Duration duration);
std::string words(const core::Operation& operation);
std::string words(const core::Outcome& outcome);

}  // namespace holdfast::sim
