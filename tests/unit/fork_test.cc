#include "base/fork.h"

#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "support/eventually.h"

namespace holdfast::test {
namespace {

void look_up() {
  const base::ForksWait until_found;

  addrinfo* found = nullptr;
  if (getaddrinfo("127.0.0.1", "1", nullptr, &found) == 0) freeaddrinfo(found);
}

// Without ForksWait one child in a few hundred inherits the C library's lock and hangs.
TEST(ForksWait, AChildMayLookUpWhatItsParentsThreadsLookUp) {
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!done) look_up();
    });
  }
  bool hung = false;
  for (int i = 0; i < 200 && !hung; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      look_up();
      ::_exit(0);
    }
    int status = 0;
    hung = !eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; });
    if (hung) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
    }
  }
  EXPECT_FALSE(hung);
  done = true;
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace holdfast::test
