#pragma once

#include <holdfast/error.h>
#include <holdfast/options.h>
#include <string>

#include "engine/url.h"

namespace holdfast::engines {

// zookeeper://user:password@h1:2181,h2,h3/chroot?session_timeout=30s&...
struct ZookeeperOptions {
  enum class Layout { curator, kazoo };
  enum class Strategy { queue, simple };
  // What a name that nobody uses becomes when it is first locked exclusively.
  enum class Kind { either, mutex, read_write };

  std::string hosts;  // as the vendor's library wants them
  std::string root;   // where our names live: "" or "/a/b"
  std::string auth;   // "user:password" for digest; empty: none
  Duration session_timeout{};
  Duration tick{};     // of the servers; how much older the leader's news of us may be
  Duration timeout{};  // how long to wait for a connection
  Layout layout = Layout::curator;
  Strategy strategy = Strategy::queue;
  Kind kind = Kind::either;
  bool verbatim = false;  // names are paths

  static Result<ZookeeperOptions> from(const engine::Url& url);
};

}  // namespace holdfast::engines
