#pragma once

#include <holdfast/error.h>
#include <string_view>

namespace holdfast::engines {

// An error reply in our words. Redis refuses before it changes anything, so
// none of them is outcome_unknown.
Error redis_error(std::string_view reply);

// It may be over in a moment: loading, a slow script, a failover.
bool is_passing(std::string_view reply);
// Another server is the master now.
bool is_demoted(std::string_view reply);

}  // namespace holdfast::engines
