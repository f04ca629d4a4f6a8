#include "bench.h"

#include <charconv>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>

#include "bench_scenarios.h"
#include "commands.h"
#include "duration.h"
#include "exit_status.h"
#include "secrets.h"

namespace holdfast::command {
namespace bench {
namespace {

struct Options {
  std::string scenarios = kUsualScenarios;
  Duration duration = std::chrono::seconds{5};
  Size size;
  bool worker = false;
};

// "5", "0.5": seconds; durations like "500ms" as everywhere.
Result<void> read_duration(const std::string& value, Duration& duration) {
  const bool plain = value.find_first_not_of("0123456789.") == std::string::npos;
  const auto parsed = parse_duration(plain ? value + "s" : value);
  if (!parsed) {
    return tl::unexpected{parsed.error()};
  }
  if (*parsed < std::chrono::milliseconds{10} || *parsed > std::chrono::hours{1}) {
    return fail(ErrorCode::invalid_argument, "--seconds must be from 0.01 to 3600");
  }
  duration = *parsed;
  return {};
}

Reader number_up_to(std::uint32_t most, std::optional<std::uint32_t>& number) {
  return [most, &number](const std::string& value) -> Result<void> {
    std::uint32_t read = 0;
    const char* const end = value.data() + value.size();
    const auto [last, failure] = std::from_chars(value.data(), end, read);
    if (failure != std::errc{} || last != end || read == 0 || read > most) {
      return fail(ErrorCode::invalid_argument,
                  "'" + value + "' is no number from 1 to " + std::to_string(most));
    }
    number = read;
    return {};
  };
}

std::string random_prefix() {
  std::ostringstream text;
  text << "bench:" << std::hex << std::random_device{}() << ":";
  return text.str();
}

Result<Row> measure(const Scenario& scenario, Plan plan, const Capabilities& store) {
  if (scenario.processes && store.engine == "memory") {
    return Row{&scenario, {}, "a memory: store lives in one process"};
  }
  plan.prefix = random_prefix();
  return scenario.measure(plan).map([&](Figures figures) {
    return Row{&scenario, std::move(figures), ""};
  });
}

int run(const Context& context, const Options& options) {
  if (options.worker) {
    const auto done = work();
    if (!done) {
      return report(context, done.error());
    }
    return *done ? kSuccess : kNo;
  }
  const auto chosen = parse_scenarios(options.scenarios);
  if (!chosen) {
    return report(context, chosen.error());
  }
  const auto url = store_url(context);
  if (!url) {
    return report(context, url.error());
  }
  Capabilities store;
  {
    const auto client = Client::open(*url);
    if (!client) {
      return report(context, client.error());
    }
    store = client->capabilities();
  }
  std::vector<Row> rows;
  for (const Scenario* scenario : *chosen) {
    if (!context.json) {
      std::cerr << scenario->name << ": " << scenario->what << '\n';
    }
    auto row = measure(*scenario, {*url, "", options.duration, options.size}, store);
    if (!row) {
      return report(context, row.error());
    }
    rows.push_back(*std::move(row));
  }
  if (context.json) {
    print_json(rows, redacted(*url), options.duration);
  } else {
    print_table(rows);
  }
  return kSuccess;
}

constexpr const char* kExamples =
    R"(Measures your own store through the library, with locks of its own under a
random prefix, and frees them all. Scenarios:
  U1, U32   lock+unlock cycles/s by 1 or 32 threads, each on 100 names of its own;
            U8, U128; A32: by 32 callbacks
  C16       16 threads, one name: hand-overs/s, largest share over the mean
  Q100      100 callbacks, one name, let go at once and line up again: hand-overs/s
  H4        4 processes, one name, 1 ms of work: gap between two, overtakes
  P2        a process that sleeps in the queue is let in every 700 ms: how late
  W100      100 threads wait for a held lock: processor time, wake-ups
  W1000     1,000 waits for one held lock; W1000n: for as many; W50p: 50 processes
  L100k     100,000 leases held by one process: memory, renewals, losses

Examples:
  holdfast bench
  holdfast bench --url sqlite:/srv/app/locks.db --scenario U1,P2 --seconds 10
  holdfast bench --scenario L100k --json
  holdfast bench --scenario U32 --names 1000000
)";

}  // namespace
}  // namespace bench

void register_bench(CommandLine& line, const Context& context) {
  auto options = std::make_shared<bench::Options>();
  line.add("bench", "Measure how fast your store locks", "holdfast bench [OPTIONS]")
      .option("--scenario", "LIST",
              std::string{"Which, comma-separated; default "} + bench::kUsualScenarios,
              into(options->scenarios))
      .option("--seconds", "S", "How long each is measured; default 5",
              [options](const std::string& value) {
                return bench::read_duration(value, options->duration);
              })
      .option("--threads", "N", "In U and C scenarios, instead of what their names say",
              bench::number_up_to(1024, options->size.threads))
      .option("--names", "N", "In U scenarios, for all threads; default 100 a thread",
              bench::number_up_to(10'000'000, options->size.names))
      .option("--waiters", "N", "In W and Q scenarios, a process",
              bench::number_up_to(100'000, options->size.waiters))
      .hidden_flag("--worker", options->worker)
      .examples(bench::kExamples)
      .action([&context, options] { return bench::run(context, *options); });
}

}  // namespace holdfast::command
