// The servers that other tests rely on.
#include <gtest/gtest.h>

#include "support/server.h"

namespace holdfast::test {
namespace {

TEST(Servers, APrivateOneComesBackWithItsPort) {
  PrivateServer server{"mariadb"};
  const auto port = server.port();
  const auto pid = server.fact("pid");
  server.kill();
  server.start();
  EXPECT_EQ(server.port(), port);
  EXPECT_NE(server.fact("pid"), pid);
}

TEST(Servers, TheSharedOneIsTheSameForAll) {
  EXPECT_EQ(&shared_server("mariadb"), &shared_server("mariadb"));
}

}  // namespace
}  // namespace holdfast::test
