// Coroutines of one Asio thread sell tickets. Each reads the stock, waits for
// a payment and writes the stock back; the lock keeps it to one at a time,
// and no thread is blocked by those who wait.

#include <holdfast/asio.h>
#include <holdfast/holdfast.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <iostream>

using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

constexpr int kTickets = 10;
constexpr int kCustomers = 15;

struct Shop {
  int stock = kTickets;
  int sold = 0;
  int served = 0;
};

asio::awaitable<void> buy(holdfast::Client& client, Shop& shop) {
  // A variable, because GCC 12 destroys the members of an aggregate temporary
  // inside a co_await expression twice.
  const holdfast::AcquireOptions options{.ttl = 10s, .wait = 30s};
  holdfast::Result<holdfast::Lease> lease =
      co_await client.async_acquire("concert:7", options, asio::use_awaitable);
  if (!lease) {
    std::cerr << lease.error() << '\n';
    co_return;
  }
  const int left = shop.stock;
  asio::steady_timer payment{co_await asio::this_coro::executor, 5ms};
  co_await payment.async_wait(asio::use_awaitable);
  if (left > 0) {
    shop.stock = left - 1;
    ++shop.sold;
  }
  ++shop.served;
}  // ~Lease sends the release and does not wait for the answer

}  // namespace

int main() {
  auto client = holdfast::Client::open("sqlite:locks.db", {.label = "tickets"});
  if (!client) {
    std::cerr << client.error() << '\n';
    return 1;
  }
  Shop shop;
  asio::io_context context;
  for (int i = 0; i < kCustomers; ++i) {
    asio::co_spawn(context, buy(*client, shop), [](const std::exception_ptr& error) {
      if (error) {
        std::rethrow_exception(error);
      }
    });
  }
  context.run();
  std::cout << kCustomers << " customers, " << shop.sold << " tickets sold, " << shop.stock
            << " left\n";
  return shop.served == kCustomers && shop.sold == kTickets && shop.stock == 0 ? 0 : 1;
}
