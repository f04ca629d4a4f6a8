// Many readers or one writer.
#include <atomic>
#include <latch>
#include <vector>

#include "conformance/conformance.h"

namespace holdfast::test {
namespace {

class Shared : public Conformance {
 protected:
  static AcquireOptions reader() { return {.mode = Mode::shared}; }
};
class SharedInOrder : public Shared {};
HOLDFAST_RUN_ON(Shared, harnesses_with(&Claims::shared));
HOLDFAST_RUN_ON(SharedInOrder, harnesses_with(&Claims::shared, &Claims::fair));

TEST_P(Shared, ReadersOfDifferentClientsHoldTogether) {
  auto one = open();
  auto other = open();
  auto first = one->try_acquire(name(), reader());
  auto second = other->try_acquire(name(), reader());
  auto third = one->try_acquire(name(), reader());
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  ASSERT_THAT(third, IsOk());
}

TEST_P(Shared, AWriterWaitsForTheLastReader) {
  auto one = open();
  auto other = open();
  auto first = one->acquire(name(), reader());
  auto second = one->acquire(name(), reader());
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(other->try_acquire(name()), FailsWith(ErrorCode::busy));
  EXPECT_THAT(one->try_acquire(name()), FailsWith(ErrorCode::busy));

  ASSERT_THAT(first->release(), IsOk());
  EXPECT_THAT(other->try_acquire(name()), FailsWith(ErrorCode::busy));
  ASSERT_THAT(second->release(), IsOk());
  ASSERT_THAT(one->flush(), IsOk());  // the last local reader may outlive its lease briefly
  EXPECT_THAT(other->try_acquire(name()), IsOk());
}

TEST_P(Shared, ReadersWaitForTheWriter) {
  auto one = open();
  auto other = open();
  auto writer = one->acquire(name());
  ASSERT_THAT(writer, IsOk());
  EXPECT_THAT(other->try_acquire(name(), reader()), FailsWith(ErrorCode::busy));
  EXPECT_THAT(one->try_acquire(name(), reader()), FailsWith(ErrorCode::busy));
  ASSERT_THAT(writer->release(), IsOk());
  EXPECT_THAT(other->try_acquire(name(), reader()), IsOk());
}

TEST_P(Shared, ReadersThatWaitedEnterTogether) {
  auto holder = open();
  auto writer = holder->acquire(name());
  ASSERT_THAT(writer, IsOk());

  constexpr int kReaders = 3;
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::future<bool>> readers;
  std::latch all_inside{kReaders};
  for (int i = 0; i < kReaders; ++i) {
    clients.push_back(open());
    readers.push_back(in_background([&, client = clients.back().get()] {
      auto lease = client->acquire(name(), {.wait = kPatience, .mode = Mode::shared});
      if (!lease) return false;
      all_inside.count_down();
      return eventually([&] { return all_inside.try_wait(); });
    }));
  }
  ASSERT_TRUE(await_waiters(kReaders));
  ASSERT_THAT(writer->release(), IsOk());
  for (auto& reader : readers) EXPECT_TRUE(reader.get()) << "readers entered one by one";
}

TEST_P(Shared, AShortReadLeaseDoesNotEndALongerOne) {
  auto one = open();
  auto other = open();
  auto lasting = one->acquire(name(), reader());
  auto brief = other->acquire(
      name(), {.ttl = harness().shortest_ttl(), .mode = Mode::shared, .renew = false});
  ASSERT_THAT(lasting, IsOk());
  ASSERT_THAT(brief, IsOk());
  ASSERT_TRUE(await_holders(1));

  EXPECT_TRUE(lasting->is_alive());
  EXPECT_TRUE(is_seen_held(*lasting));
  EXPECT_THAT(open()->try_acquire(name()), FailsWith(ErrorCode::busy));
}

TEST_P(Shared, ALateReleaseByAReaderLeavesTheWriterAlone) {
  auto one = open();
  auto other = open();
  auto reader =
      one->acquire(name(), {.ttl = harness().shortest_ttl(), .mode = Mode::shared, .renew = false});
  ASSERT_THAT(reader, IsOk());
  harness().let_expire(*reader);
  auto writer = other->acquire(name(), {.wait = kPatience});
  ASSERT_THAT(writer, IsOk());

  EXPECT_THAT(reader->release(), FailsWith(ErrorCode::lease_lost));
  EXPECT_TRUE(is_seen_held(*writer));
  EXPECT_THAT(one->try_acquire(name(), this->reader()), FailsWith(ErrorCode::busy));
}

TEST_P(Shared, ReadersAndWritersInTurmoilNeverMix) {
  constexpr int kClients = 2;
  constexpr int kThreads = 3;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kClients; ++i) clients.push_back(open());
  std::atomic<int> readers = 0;
  std::atomic<int> writers = 0;
  std::atomic<bool> mixed = false;
  std::vector<std::future<void>> work;
  for (int i = 0; i < kClients * kThreads; ++i) {
    work.push_back(in_background([&, i] {
      for (int turn = 0; turn < 20; ++turn) {
        const bool writes = (i + turn) % 3 == 0;
        auto lease = clients[static_cast<std::size_t>(i % kClients)]->acquire(
            name(), {.wait = kPatience, .mode = writes ? Mode::exclusive : Mode::shared});
        ASSERT_THAT(lease, IsOk());
        (writes ? writers : readers)++;
        if (writers > (readers == 0 ? 1 : 0)) mixed = true;
        std::this_thread::yield();
        (writes ? writers : readers)--;
      }
    }));
  }
  for (auto& each : work) each.get();
  EXPECT_FALSE(mixed);
}

TEST_P(SharedInOrder, AWaitingWriterHoldsBackLaterReaders) {
  auto one = open();
  auto other = open();
  auto third = open();
  auto early = one->acquire(name(), reader());
  ASSERT_THAT(early, IsOk());
  auto writer = acquire_later(*other, name());
  ASSERT_TRUE(await_waiters(1));
  EXPECT_THAT(third->try_acquire(name(), reader()), FailsWith(ErrorCode::busy));

  ASSERT_THAT(early->release(), IsOk());
  EXPECT_THAT(writer.get(), IsOk());
}

// Each reader enters while another is inside, so that there is never a moment
// without one; only the bound on local admission lets the writer in.
TEST_P(SharedInOrder, AStreamOfLocalReadersDoesNotStarveAWriterElsewhere) {
  auto crowd = open();
  auto other = open();
  std::atomic<bool> done = false;
  std::atomic<int> inside = 0;
  std::atomic<int> entries = 0;
  std::vector<std::future<void>> readers;
  for (int i = 0; i < 3; ++i) {
    readers.push_back(in_background([&] {
      while (!done) {
        auto lease = crowd->acquire(name(), {.wait = kPatience, .mode = Mode::shared});
        ASSERT_THAT(lease, IsOk());
        ++inside;
        const int mine = ++entries;
        // Until somebody else came in too, or cannot.
        eventually([&] { return done || entries > mine; }, 20ms);
        --inside;
      }
    }));
  }
  EXPECT_TRUE(eventually([&] { return entries > 20; }));
  auto writer = other->acquire(name(), {.wait = kPatience});
  EXPECT_THAT(writer, IsOk());
  EXPECT_EQ(inside, 0);
  done = true;
  if (writer) {
    EXPECT_THAT(writer->release(), IsOk());
  }
  for (auto& each : readers) each.get();
}

}  // namespace
}  // namespace holdfast::test
