#pragma once

#include <holdfast/error.h>
#include <holdfast/options.h>
#include <chrono>
#include <string>

#include "engine/url.h"

namespace holdfast::engines {

struct SqliteOptions {
  std::string path;  // absolute once located
  // How long to wait for the file while another process writes.
  Duration busy_timeout = std::chrono::seconds{5};
  // Some FUSE file systems lock and map memory like a local disk, most do not.
  bool allow_fuse = false;

  // Tests only: in place of the kernel's.
  std::string boot_id = {};

  static Result<SqliteOptions> from(const engine::Url& url);
};

}  // namespace holdfast::engines
