// Passwords that stand in a URL are for the store alone.

#include "holdfast/secrets.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "apps/command.h"
#include "base/file_descriptor.h"

namespace holdfast::test {
namespace {

using command::redacted;

TEST(Redacted, HidesThePasswordWhereverItStands) {
  EXPECT_EQ(redacted("mysql://me:hunter2@host:3306/db?a=b"), "mysql://me:***@host:3306/db?a=b");
  EXPECT_EQ(redacted("redis://:hunter2@host"), "redis://:***@host");
  EXPECT_EQ(redacted("redis://:hun@ter2@host?x=y"), "redis://:***@host?x=y");
  EXPECT_EQ(redacted("postgres:host=db password=hunter2 dbname=app"),
            "postgres:host=db password=*** dbname=app");
  EXPECT_EQ(redacted("postgres:password='hunter \\' 2' host=db"), "postgres:password=*** host=db");
  EXPECT_EQ(redacted("postgres://me@db/app?password=hunter2&a=b"),
            "postgres://me@db/app?password=***&a=b");
}

TEST(Redacted, ShowsTheRest) {
  for (const char* url : {"sqlite:/srv/locks.db", "memory:", "redis://host:6379/0?prefix=a@b:c",
                          "mysql://me@host:3306/db", "redlock://a:1,b:2,c:3",
                          "redis://host/0?password_file=/etc/secret"}) {
    EXPECT_EQ(redacted(url), url);
  }
}

class Secrets : public CommandTest {};

TEST_F(Secrets, AreNotInTheListOfProcesses) {
  // A store that never answers.
  const base::FileDescriptor silent{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(silent.get(), any, size), 0);
  ASSERT_EQ(listen(silent.get(), 8), 0);
  ASSERT_EQ(getsockname(silent.get(), any, &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  Process process = start({"watch", "--url", "redis://:hunter2@127.0.0.1:" + port + "?timeout=1h"});
  const auto words = [&] {
    std::ifstream list{"/proc/" + std::to_string(process.pid()) + "/cmdline"};
    return std::string{std::istreambuf_iterator<char>{list}, {}};
  };
  EXPECT_TRUE(eventually([&] {
    const std::string seen = words();
    return seen.find("://:*******@") != std::string::npos;
  })) << words();
}

}  // namespace
}  // namespace holdfast::test
