#pragma once

#include <holdfast/inspect.h>
#include <string>
#include <string_view>

#include "base/ids.h"

// How a holder is written into a column that other programs use as well. Every
// request has a text of its own, so that nobody ends another's.
namespace holdfast::engines::relational {

// "label on host, process 42 [id]", at most 200 bytes of printable ASCII.
std::string owner_text(const Party& party, const base::Id& request);
// Appended by whoever revokes the lock: it ends the holder's renewals.
inline constexpr std::string_view kRevokedMark = " (revoked)";

// What owner_text() was given; of strangers the whole is the label.
Party party_in(std::string_view owner);
std::string waiter_text(const Party& party);  // the same without the request

}  // namespace holdfast::engines::relational
