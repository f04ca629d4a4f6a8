#include "engines/sqlite/sqlite_options.h"

#include "engine/query.h"

namespace holdfast::engines {

Result<SqliteOptions> SqliteOptions::from(const engine::Url& url) {
  if (!url.hosts.empty() || !url.user.empty()) {
    return fail(ErrorCode::invalid_argument,
                "sqlite: takes a file, not a host; write sqlite:/absolute/path.db or "
                "sqlite:relative.db");
  }
  if (url.path.empty() || url.path.back() == '/') {
    return fail(ErrorCode::invalid_argument,
                "sqlite: needs the name of a file, as in sqlite:/var/lib/app/locks.db");
  }
  if (url.path == ":memory:") {
    return fail(ErrorCode::invalid_argument, "for locks in memory write memory:");
  }
  if (url.path.find('\0') != std::string::npos) {
    return fail(ErrorCode::invalid_argument, "a file's name cannot contain a zero byte");
  }
  SqliteOptions options;
  engine::Query query{url};
  options.path = url.path;
  options.busy_timeout = query.duration("busy_timeout", options.busy_timeout);
  options.allow_fuse = query.flag("allow_fuse", options.allow_fuse);
  if (auto good = query.finish(); !good) {
    return tl::unexpected{good.error()};
  }
  return options;
}

}  // namespace holdfast::engines
