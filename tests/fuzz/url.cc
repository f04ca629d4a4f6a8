// sources: src/engine/url.cc src/engine/query.cc src/core/error.cc
#include "engine/url.h"

#include <array>
#include <string>

#include "engine/query.h"
#include "fuzz/fuzz.h"

using holdfast::engine::Query;
using holdfast::engine::Url;

// Store URLs: what people put into a configuration.
FUZZ_TARGET(url) {
  const auto url = Url::parse(input);
  if (!url) {
    REQUIRE(url.error().code == holdfast::ErrorCode::invalid_argument);
    REQUIRE(!url.error().text.empty());
    return;
  }
  REQUIRE(!url->scheme.empty());
  Url bare = *url;  // the rest may well contain the same text
  bare.scheme = "x";
  bare.user.clear();
  bare.hosts.clear();
  bare.path.clear();
  bare.query.clear();
  REQUIRE(url->password.size() < 4 || bare.redacted().find(url->password) == std::string::npos ||
          url->password.find_first_not_of("*:@/") == std::string::npos);
  REQUIRE(!url->redacted().empty());
  Query query{*url};
  query.duration("timeout", std::chrono::seconds{1});
  query.flag("tls", false);
  REQUIRE(query.number("n", 3, 1, 9) <= 9);
  constexpr std::array<std::string_view, 2> kChoices{"lease", "simple"};
  REQUIRE(query.choice("strategy", kChoices) < kChoices.size());
  static_cast<void>(query.finish());
}
