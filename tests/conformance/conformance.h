#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/holdfast.h>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "support/eventually.h"
#include "support/harness.h"

namespace holdfast::test {

using namespace std::chrono_literals;

// The base of every suite: one store of the engine under test, made for the
// test, and a name in it. Tests ask the harness what the engine can do.
class Conformance : public ::testing::TestWithParam<HarnessEntry> {
 protected:
  void SetUp() override;

  Harness& harness() { return *harness_; }
  const Claims& claims() const { return GetParam().claims; }
  const std::string& name() const { return name_; }
  std::unique_ptr<Client> open() { return harness_->open(); }

  // What the store tells a bystander about name().
  LockInfo seen();
  bool await_holders(std::size_t count);
  bool await_waiters(std::size_t count);
  // Nothing is held or queued under any of this test's names.
  bool await_nothing_left();
  // Held under this lease's grant, by the store's account.
  bool is_seen_held(const Lease& lease) { return is_held(seen(), lease); }

  Client& bystander();

  // As in support/given_time.h, with another name() each time.
  void given_time(const std::function<void(int scale)>& body);

  // What was asked for, if the engine lets callers choose; else the only one there is.
  Duration ttl(Duration wanted) const {
    return claims().lease ? wanted : harness_->renewable_ttl();
  }
  // The same for a worker's command.
  std::string ttl_word(Duration wanted) const {
    return " ttl=" +
           std::to_string(
               std::chrono::duration_cast<std::chrono::milliseconds>(ttl(wanted)).count());
  }

 private:
  std::unique_ptr<Harness> harness_;
  std::unique_ptr<Client> bystander_;
  std::string name_;
};

// Runs it on a thread of its own.
template <typename Work>
auto in_background(Work work) {
  return std::async(std::launch::async, std::move(work));
}

// Waits, in the background, for longer than any test takes, but not for ever:
// a broken promise must fail the test and not hang it.
inline std::future<Result<Lease>> acquire_later(Client& client, const std::string& name,
                                                AcquireOptions options = {}) {
  if (!options.wait) options.wait = kPatience;
  return in_background([&client, name, options] { return client.acquire(name, options); });
}

template <typename T>
bool is_ready(const std::future<T>& future) {
  return future.wait_for(0s) == std::future_status::ready;
}

MATCHER(IsOk, "succeeds") {
  if (arg) return true;
  *result_listener << "which failed with " << arg.error();
  return false;
}

MATCHER_P(FailsWith, code, "fails with " + std::string{to_string(code)}) {
  if (arg) {
    *result_listener << "which succeeded";
    return false;
  }
  *result_listener << "which failed with " << arg.error();
  return arg.error().code == code;
}

}  // namespace holdfast::test

// Runs a suite on every harness that claims what the suite is about. An engine
// that lacks it is left out by its own declaration, which a test compares with
// the engine's, never by a skip.
#define HOLDFAST_RUN_ON(Suite, harnesses)                           \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Suite);             \
  INSTANTIATE_TEST_SUITE_P(, Suite, ::testing::ValuesIn(harnesses), \
                           [](const auto& entry) { return entry.param.label(); })
