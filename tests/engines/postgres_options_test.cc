// postgres:// in its forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines/postgres/postgres_options.h"

namespace holdfast::engines::postgres {
namespace {

using ::testing::HasSubstr;

Result<Options> parse(const std::string& text) {
  return engine::Url::parse(text).and_then([](const auto& url) { return Options::from(url); });
}

std::string keyword(const std::string& url, const std::string& key) {
  const auto options = parse(url);
  EXPECT_TRUE(options) << url << ": " << options.error();
  if (!options || !options->connection.contains(key)) {
    return "(none)";
  }
  return options->connection.at(key);
}

TEST(PostgresOptions, HostsPortsUserAndDatabase) {
  const std::string url = "postgres://me@a:1,b,c:3/app?timeout=2s&schema=locks";
  EXPECT_EQ(keyword(url, "host"), "a,b,c");
  EXPECT_EQ(keyword(url, "port"), "1,,3");
  EXPECT_EQ(keyword(url, "user"), "me");
  EXPECT_EQ(keyword(url, "dbname"), "app");
  EXPECT_EQ(keyword(url, "target_session_attrs"), "read-write");
  EXPECT_EQ(parse(url)->timeout, std::chrono::seconds{2});
  EXPECT_EQ(parse(url)->schema, "locks");
}

TEST(PostgresOptions, SocketsKeywordsAndTheEnvironment) {
  EXPECT_EQ(keyword("postgres:///app?host=/run/postgresql", "host"), "/run/postgresql");
  EXPECT_EQ(keyword("postgres://%2Frun%2Fpostgresql/app", "host"), "/run/postgresql");
  EXPECT_EQ(keyword("postgres:host=/tmp dbname=app user='a b'", "user"), "a b");
  EXPECT_EQ(keyword("postgres://", "host"), "(none)");  // PGHOST, or libpq's default
  EXPECT_EQ(keyword("postgres://?service=prod", "service"), "prod");
}

TEST(PostgresOptions, ServersElsewhereAreVerified) {
  EXPECT_EQ(keyword("postgres://db.example.com/app", "sslmode"), "verify-full");
  EXPECT_EQ(keyword("postgres://127.0.0.1,db.example.com/app", "sslmode"), "verify-full");
  EXPECT_EQ(keyword("postgres:host=db.example.com", "sslmode"), "verify-full");
  EXPECT_EQ(keyword("postgres://localhost/app?hostaddr=192.0.2.1", "sslmode"), "verify-full");
  EXPECT_EQ(keyword("postgres:///app?hostaddr=127.0.0.1,192.0.2.1", "sslmode"), "verify-full");
  EXPECT_EQ(keyword("postgres://localhost/app?hostaddr=127.0.0.1", "sslmode"), "(none)");
  EXPECT_EQ(keyword("postgres://127.0.0.1/app", "sslmode"), "(none)");
  EXPECT_EQ(keyword("postgres://db.example.com/app?sslmode=require", "sslmode"), "require");
}

TEST(PostgresOptions, MistakesAreNamedAndPasswordsAreNot) {
  for (const char* url :
       {"postgres://h/d?no_such_option=1", "postgres://h/d?schema=Robert'); DROP TABLE x",
        "postgres://h/d?strategy=hope", "postgres://h/d?timeout=0s", "postgres://h/d?table=a-b",
        "postgres:host=h password=geheim nonsense"}) {
    const auto options = parse(url);
    ASSERT_FALSE(options) << url;
    EXPECT_EQ(options.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(options.error().text, ::testing::Not(HasSubstr("geheim")));
  }
}

}  // namespace
}  // namespace holdfast::engines::postgres
