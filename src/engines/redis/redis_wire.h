#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/commands.h"
#include "engine/engine.h"

// How commands travel to our scripts and outcomes come back. A command is a
// letter and what it needs, packed as Lua's struct.unpack() reads it.
namespace holdfast::engines {

void append_packed(std::string& out, const core::Operation& operation);

void append_packed_number(std::string& out, double number);

inline constexpr std::size_t kPackedOutcome = 34;
// From exactly kPackedOutcome bytes.
core::Outcome unpack_outcome(std::string_view bytes);

// What is published to a session's channel: the request, and its token.
std::optional<engine::Ring> unpack_ring(std::string_view bytes);

// Who we are, for people, in one text.
std::string pack_party(const Party& party);
Party unpack_party(std::string_view text);

std::string_view bytes_of(const base::Id& id);
base::Id id_from(std::string_view bytes);  // zero unless there are 16

}  // namespace holdfast::engines
