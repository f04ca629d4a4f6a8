#pragma once

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>

#include "client/service.h"
#include "support/engine_driver.h"
#include "support/eventually.h"
#include "unit/async_engine.h"

namespace holdfast::test {

// Services on a memory store of the test's own.
class ServiceTest : public ::testing::Test {
 protected:
  std::string url() const {
    return std::string{"memory:"} + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }

  // The engine itself: outcomes come before submit() returns.
  std::shared_ptr<client::Service> open(const ClientOptions& options = {}) {
    return checked(client::Service::open(url(), options));
  }
  std::shared_ptr<client::Service> open_async(AsyncEngine::Line line = {}) {
    const std::uint32_t session = next_session_++;
    return checked(client::Service::open(
        std::make_unique<AsyncEngine>(open_engine(url(), session), line, control), id(session),
        {}));
  }

  // An acquire that does not block, and its result.
  static std::future<Result<Lease>> acquire_then(client::Service& service, const std::string& name,
                                                 const AcquireOptions& options = {}) {
    auto promise = std::make_shared<std::promise<Result<Lease>>>();
    auto future = promise->get_future();
    service.acquire_then(
        name, options, [promise](Result<Lease> result) { promise->set_value(std::move(result)); });
    return future;
  }
  static bool ready(const std::future<Result<Lease>>& future) {
    return future.wait_for(kPatience) == std::future_status::ready;
  }

  // Nobody holds or awaits anything, as the store sees it.
  static bool all_free(client::Service& service) {
    return eventually([&] {
      const auto all = (*service.engine())->list("");
      return all && all->empty();
    });
  }

  std::shared_ptr<AsyncEngine::Control> control = std::make_shared<AsyncEngine::Control>();

 private:
  static std::shared_ptr<client::Service> checked(Result<std::shared_ptr<client::Service>> opened) {
    EXPECT_TRUE(opened) << opened.error();
    return opened ? std::move(*opened) : nullptr;
  }

  std::uint32_t next_session_ = 1;
};

}  // namespace holdfast::test
