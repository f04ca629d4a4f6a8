// The servers that other tests rely on.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <csignal>

#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "base/file_descriptor.h"
#include "support/eventually.h"
#include "support/free_port.h"
#include "support/needs.h"
#include "support/process.h"
#include "support/server.h"
#include "support/temp_dir.h"

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

// To look whether a server lives is to hold its lock for a moment.
TEST(Servers, ALookAtTheSharedOneDoesNotPassForIt) {
  HOLDFAST_SKIP_IF_MISSING(missing_program("redis-server"));
  const TempDir dir;
  const auto lock = [&](const char* file, int how) {
    const int fd = open((dir / file).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    return std::pair{base::FileDescriptor{fd}, flock(fd, how | LOCK_NB) == 0};
  };
  auto [look, looks] = lock("alive", LOCK_SH);
  ASSERT_TRUE(looks);
  Process tool = Process::start(
      {HOLDFAST_SOURCE_DIR "/tools/server.py", "--shared", "redis", dir.path().string()});
  ASSERT_TRUE(eventually([&] { return !lock("starting", LOCK_EX).second; }));
  EXPECT_TRUE(throughout(std::chrono::milliseconds{200}, [&] { return tool.is_running(); }))
      << tool.err();
  look = {};
  EXPECT_EQ(tool.wait(std::chrono::seconds{120}), 0) << tool.err();
  EXPECT_NE(tool.out().find("port="), std::string::npos) << tool.out();
  // Or it lives on for a while, without a directory.
  const std::string said = tool.out();
  const auto pid = said.substr(said.find("pid=") + 4);
  kill(static_cast<pid_t>(std::stol(pid)), SIGKILL);
  EXPECT_TRUE(eventually([&] { return lock("alive", LOCK_EX).second; }));
}

TEST(Servers, APortIsGivenOnce) {
  std::set<std::uint16_t> ports;
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(ports.insert(free_port()).second);
  }
}

}  // namespace
}  // namespace holdfast::test
