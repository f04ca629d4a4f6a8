#pragma once

// Optional: the asynchronous twin for Boost.Asio programs. The only header
// that needs Boost (1.81 or later).

#include <holdfast/client.h>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <memory>
#include <string>
#include <utility>

namespace holdfast {

// Completes with Result<Lease> on the handler's associated executor:
//   Result<Lease> lease = co_await client.async_acquire(
//       "seat:42", {.wait = 2s}, boost::asio::use_awaitable);
// options.stop ends the wait. No thread is held while waiting.
//
// Options with a stop_token or a health_check need a name of their own before
// the co_await: GCC 12 destroys the members of an aggregate temporary in a
// co_await expression twice.
template <typename CompletionToken>
auto Client::async_acquire(std::string name, AcquireOptions options, CompletionToken&& token) {
  namespace asio = boost::asio;
  return asio::async_initiate<CompletionToken, void(Result<Lease>)>(
      [this](auto handler, const std::string& wanted, const AcquireOptions& how) {
        // std::function must be copyable, a handler need not be.
        auto shared = std::make_shared<decltype(handler)>(std::move(handler));
        auto work = asio::make_work_guard(asio::get_associated_executor(*shared));
        acquire_then(wanted, how, [shared, work](Result<Lease> result) mutable {
          auto executor = work.get_executor();
          asio::post(executor, [shared = std::move(shared), result = std::move(result)]() mutable {
            auto ready = std::move(*shared);
            std::move(ready)(std::move(result));
          });
          work.reset();
        });
      },
      token, std::move(name), std::move(options));
}

}  // namespace holdfast
