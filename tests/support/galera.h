#pragma once

#include <optional>
#include <string>

#include "support/server.h"

namespace holdfast::test {

std::optional<std::string> missing_galera();

// Two nodes of MariaDB that form one cluster, as soon as the object is there.
class GaleraPair {
 public:
  GaleraPair();

  // What the node says to the statement, as root. Throws if it refuses.
  static std::string ask(const PrivateServer& node, const std::string& sql);

  const PrivateServer one{"galera"};
  const PrivateServer other{"galera", {"join=" + one.fact("cluster")}};
};

}  // namespace holdfast::test
