#include "support/galera.h"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "support/eventually.h"
#include "support/process.h"

namespace holdfast::test {

std::optional<std::string> missing_galera() {
  if (std::getenv("HOLDFAST_MYSQLD") != nullptr) return "this is MySQL, which has no Galera";
  if (auto server = missing_program("mariadbd")) return server;
  if (auto copier = missing_program("rsync")) return copier;
  return std::filesystem::exists("/usr/lib/galera/libgalera_smm.so")
             ? std::nullopt
             : std::optional<std::string>{"galera-4 is not installed"};
}

GaleraPair::GaleraPair() {
  const bool joined = eventually([&] {
    return ask(one, "SHOW STATUS LIKE 'wsrep_cluster_size'").find('2') != std::string::npos;
  });
  if (!joined) throw std::runtime_error{"two Galera nodes do not find each other"};
}

std::string GaleraPair::ask(const PrivateServer& node, const std::string& sql) {
  Process client = Process::start({"mariadb", "--no-defaults", "--socket=" + node.fact("socket"),
                                   "-uroot", "-N", "holdfast", "-e", sql});
  if (client.wait() != 0) throw std::runtime_error{sql + ": " + client.err()};
  return client.out();
}

}  // namespace holdfast::test
