#include <gtest/gtest.h>
#include <holdfast/client.h>

#include <atomic>

#include "support/engine_driver.h"
#include "support/eventually.h"

namespace holdfast {
namespace {

using namespace test;
using core::Status;

TEST(MemoryEngine, NamesSeparateStores) {
  const auto a = open_engine("memory:a", 1);
  const auto b = open_engine("memory:", 2);
  EXPECT_EQ(submit(*a, "x", try_acquire(1)).status, Status::granted);
  EXPECT_EQ(submit(*b, "x", try_acquire(2)).status, Status::granted);
}

TEST(MemoryEngine, AGrantOutlivesItsEngine) {
  auto a = open_engine("memory:a", 1);
  submit(*a, "x", acquire(1));
  const auto b = open_engine("memory:a", 2);
  a.reset();
  EXPECT_EQ(submit(*b, "x", try_acquire(2)).status, Status::busy);
  EXPECT_EQ(b->show("x")->holders.at(0).party.label, "test 1");  // named though it left
}

TEST(MemoryEngine, TenThousandWhoWaitAreAllServed) {
  auto client = Client::open("memory:crowd");
  ASSERT_TRUE(client) << client.error();
  auto holder = client->acquire("x");
  ASSERT_TRUE(holder) << holder.error();
  std::atomic<int> served = 0;
  for (int i = 0; i < 10'000; ++i) {
    client->acquire_then("x", {}, [&](const Result<Lease>& lease) { served += lease ? 1 : 0; });
  }
  EXPECT_EQ(served, 0);
  EXPECT_TRUE(holder->release());
  EXPECT_TRUE(eventually([&] { return served == 10'000; })) << served;
}

TEST(MemoryEngine, TheStoreGoesWithTheLastEngine) {
  auto a = open_engine("memory:a", 1);
  submit(*a, "x", acquire(1));
  a.reset();
  a = open_engine("memory:a", 2);
  EXPECT_EQ(submit(*a, "x", try_acquire(2)).status, Status::granted);
}

TEST(MemoryEngine, TheRingBringsTheGrant) {
  const auto a = open_engine("memory:ring", 1);
  submit(*a, "x", acquire(2));
  submit(*a, "x", acquire(1));
  submit(*a, "x", release(2));
  const auto rings = wait_for_ring(*a);
  ASSERT_EQ(rings.size(), 1U);
  EXPECT_EQ(rings[0].token, submit(*a, "x", poll(1)).token);
}

TEST(MemoryEngine, TakesNoHostsAndNoOptions) {
  for (const char* text : {"memory://host/x", "memory:?a=b", "memory://me@/"}) {
    const auto opened = engine::open(*engine::Url::parse(text), {});
    ASSERT_FALSE(opened) << text;
    EXPECT_EQ(opened.error().code, ErrorCode::invalid_argument);
  }
}

TEST(Registry, UnknownSchemesAreToldTheKnownOnes) {
  const auto opened = engine::open(*engine::Url::parse("carrier-pigeon://loft"), {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::invalid_argument);
  for (const auto& registration : engine::registrations()) {
    EXPECT_NE(opened.error().text.find(registration.example), std::string::npos);
    for (const Capabilities& row : registration.capabilities()) {  // none: another spelling
      EXPECT_EQ(row.engine, registration.scheme);
    }
  }
}

}  // namespace
}  // namespace holdfast
