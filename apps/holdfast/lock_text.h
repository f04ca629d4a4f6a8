#pragma once

#include <holdfast/inspect.h>
#include <string>

// Words for what the store knows, shared by ls, show, watch and run.
namespace holdfast::command {

// "backup.sh@web1:4711"
std::string party_text(const Party& party);

// "exclusive", "shared", "2/5 permits"
std::string mode_text(Mode mode, std::uint32_t permits, std::uint32_t limit);

std::string token_text(const std::optional<std::uint64_t>& token);

}  // namespace holdfast::command
