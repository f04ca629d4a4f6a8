#pragma once

#include <holdfast/error.h>
#include <holdfast/options.h>
#include <memory>
#include <string>
#include <vector>

#include "engine/url.h"
#include "engines/tls/tls_session.h"

namespace holdfast::engines {

// etcd://user:password@h1:2379,h2,h3/prefix?timeout=5s&...
struct EtcdOptions {
  std::vector<engine::Url::Host> hosts;
  std::string prefix;  // of all our keys: "" or "a/b/"
  std::string user;
  std::string password;
  bool has_identity = false;  // a user, or a certificate that may name one
  Duration timeout{};         // to connect, and for each answer
  bool verbatim = false;      // names may contain /
  std::shared_ptr<Tls> tls;   // null: none

  // invalid_argument, also for files that cannot be used.

  static Result<EtcdOptions> from(const engine::Url& url);
};

}  // namespace holdfast::engines
