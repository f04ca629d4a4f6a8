// What cron starts on every host: the report is made once, by one of them, and
// the store remembers how it went.

#include <holdfast/holdfast.h>

#include <chrono>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

// One host's attempt.
holdfast::TaskEnd attempt(const std::string& host) {
  auto client = holdfast::Client::open("sqlite:example.db", {.label = host});
  if (!client) {
    std::cerr << client.error() << '\n';
    return holdfast::TaskEnd::failed;
  }
  const holdfast::TaskGuard guard{
      .name = "report", .at_most_for = 10min, .at_least_for = 5s, .once_per = 20h};
  const auto outcome = holdfast::run_task(
      *client, guard, [&](const holdfast::TaskRun& run) -> holdfast::Result<void> {
        for (int page = 0; page < 10; ++page) {
          if (run.lease().lost().stop_requested()) {
            return holdfast::fail(holdfast::ErrorCode::lease_lost,
                                  "stopped at page " + std::to_string(page));
          }
          std::this_thread::sleep_for(1ms);  // a page of the report
        }
        return {};
      });
  if (!outcome) {
    std::cerr << outcome.error() << '\n';
    return holdfast::TaskEnd::failed;
  }
  return outcome->end;
}

}  // namespace

int main() {
  {
    auto client = holdfast::Client::open("sqlite:example.db");
    const auto before = client ? holdfast::list_tasks(*client) : tl::unexpected{client.error()};
    if (before && !before->empty() && before->front().not_before > 0s) {
      std::cout << "made by an earlier run of this example; nothing is due\n";
      return 0;
    }
  }
  std::vector<holdfast::TaskEnd> ends(4);
  std::vector<std::thread> hosts;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    hosts.emplace_back([&, i] { ends[i] = attempt("web" + std::to_string(i)); });
  }
  for (std::thread& host : hosts) {
    host.join();
  }
  int ran = 0;
  int skipped = 0;
  for (const holdfast::TaskEnd end : ends) {
    ran += end == holdfast::TaskEnd::ran ? 1 : 0;
    skipped += end == holdfast::TaskEnd::skipped ? 1 : 0;
  }
  std::cout << ran << " ran, " << skipped << " skipped\n";
  return ran == 1 && skipped == 3 ? 0 : 1;
}
