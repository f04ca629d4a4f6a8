// `holdfast torture`: breaks things around the locks of a store on purpose and
// checks what its users see.

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>

#include "commands.h"
#include "duration.h"
#include "exit_status.h"
#include "proof/timeline.h"
#include "secrets.h"
#include "text.h"
#include "torture/round.h"
#include "torture/summary.h"

namespace holdfast::command {
namespace torture {
namespace {

using namespace std::chrono_literals;

constexpr Duration kRound = 20s;
constexpr Duration kUsualTtl = 500ms;

struct Options {
  Duration length = 10s;
  std::optional<std::uint64_t> seed;
  std::optional<std::string> faults;
  std::uint64_t processes = 4;
  std::uint64_t threads = 3;
  std::optional<Duration> ttl;
  std::uint64_t min_grants = 0;
  std::uint64_t min_faults = 0;
  std::optional<Duration> at_most;
  std::string timeline = "holdfast-torture.html";
  std::string events;  // empty: nowhere
  bool worker = false;
};

Result<void> read_number(const std::string& value, std::uint64_t least, std::uint64_t most,
                         std::uint64_t& number) {
  const char* end = value.data() + value.size();
  const auto [last, failure] = std::from_chars(value.data(), end, number);
  if (failure != std::errc{} || last != end || number < least || number > most) {
    return fail(ErrorCode::invalid_argument, "'" + value + "' is no number from " +
                                                 std::to_string(least) + " to " +
                                                 std::to_string(most));
  }
  return {};
}

// "5", "0.5" in the given unit; durations like "500ms" as everywhere.
Result<void> read_length(const std::string& value, const char* unit, Duration& length) {
  const bool plain = !value.empty() && value.find_first_not_of("0123456789.") == std::string::npos;
  const auto parsed = parse_duration(plain ? value + unit : value);
  if (!parsed) {
    return tl::unexpected{parsed.error()};
  }
  if (*parsed < 100ms || *parsed > 24h) {
    return fail(ErrorCode::invalid_argument, "the run must last from 0.1 seconds to a day");
  }
  length = *parsed;
  return {};
}

std::uint64_t random_number() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

Result<FaultList> faults_for(const Options& options, const Line& line, const Capabilities& store) {
  // A lock that is a session ends with its connection, and its holder learns of
  // it when it can: no exclusion is promised there while connections break.
  const bool all = line.can_be_broken() && store.exclusion != ExclusionBy::session;
  auto faults = parse_faults(options.faults.value_or(all ? "all" : "process"));
  if (faults && !line.can_be_broken() && std::ranges::any_of(*faults, is_of_the_network)) {
    return fail(ErrorCode::unsupported,
                "network faults need a store that is reached over plain TCP, which " +
                    store.engine + " here is not; use --faults process");
  }
  return faults;
}

Result<Plan> plan_for(const Options& options, const std::string& url, const Line& line) {
  Plan plan;
  plan.url = url;
  std::ostringstream prefix;
  prefix << "torture-" << std::hex << random_number() << '-';
  plan.prefix = prefix.str();
  {
    auto client = Client::open(url, {.label = "holdfast torture"});
    if (!client) {
      return tl::unexpected{std::move(client.error())};
    }
    plan.store = client->capabilities();
  }
  if (plan.store.engine == "memory") {
    return fail(ErrorCode::unsupported,
                "a memory: store lives in one process; torture needs one that processes share");
  }
  plan.processes = static_cast<std::uint32_t>(options.processes);
  plan.threads = static_cast<std::uint32_t>(options.threads);
  plan.ttl = options.ttl.value_or(std::max(kUsualTtl, plan.store.min_ttl));
  if (plan.ttl < plan.store.min_ttl || plan.ttl > plan.store.max_ttl) {
    return fail(ErrorCode::invalid_argument,
                "--ttl must be from " + spell_duration(plan.store.min_ttl) + " to " +
                    spell_duration(plan.store.max_ttl) + " on this store");
  }
  auto faults = faults_for(options, line, plan.store);
  if (!faults) {
    return tl::unexpected{std::move(faults.error())};
  }
  plan.faults = *std::move(faults);
  plan.grants_a_fault = options.min_faults == 0 ? 0 : options.min_grants / options.min_faults;
  return plan;
}

void keep_timeline(const RoundResult& result, const std::string& file, Outcome& outcome) {
  std::ofstream{file} << proof::timeline_page(
      result.violations, result.history,
      "holdfast torture: " + outcome.store + ", seed " + std::to_string(outcome.seed));
  outcome.timeline = file;
}

void keep_events(const proof::History& history, const std::string& file) {
  std::ofstream out{file, std::ios::app};
  for (const proof::Event& event : history) {
    out << proof::to_text(event) << '\n';
  }
}

Result<Outcome> torture(const Context& context, const Options& options) {
  const auto url = store_url(context);
  if (!url) {
    return tl::unexpected{url.error()};
  }
  const auto line = Line::to(*url);
  if (!line) {
    return tl::unexpected{line.error()};
  }
  const auto plan = plan_for(options, *url, *line);
  if (!plan) {
    return tl::unexpected{plan.error()};
  }
  Outcome outcome;
  outcome.store = redacted(*url);
  outcome.engine = plan->store.engine;
  outcome.strategy = plan->store.strategy;
  outcome.seed = options.seed ? *options.seed : random_number() >> 16U;
  outcome.processes = plan->processes;
  outcome.threads = plan->threads;
  outcome.ttl = plan->ttl;
  if (!context.json) {
    std::cerr << "torture of " << outcome.store << ", seed " << outcome.seed << ", "
              << plan->processes << " processes of " << plan->threads << " threads, ttl "
              << spell_duration(plan->ttl) << '\n';
  }
  std::unordered_map<std::uint32_t, std::uint64_t> tokens;
  const auto start = std::chrono::steady_clock::now();
  Dice seeds{outcome.seed};
  const auto enough = [&](Duration left) {
    const Duration passed = options.length - left;
    return (options.at_most && passed >= *options.at_most) ||
           (left <= 0ms && outcome.summary.granted >= options.min_grants &&
            (plan->faults.empty() || outcome.summary.all_faults() >= options.min_faults));
  };
  for (Duration left = options.length; !enough(left) && outcome.findings.empty();) {
    const Duration length = std::min(left > 0ms ? left : options.length, kRound);
    const auto result = run_round(*plan, *line, length, seeds.next(), tokens);
    if (!result) {
      return tl::unexpected{result.error()};
    }
    outcome.summary.add(result->history);
    if (!options.events.empty()) {
      keep_events(result->history, options.events);
    }
    for (const proof::Violation& violation : result->violations) {
      outcome.findings.push_back(
          {violation.property, violation.text, proof::to_text(violation, result->history)});
    }
    if (!result->violations.empty()) {
      keep_timeline(*result, options.timeline, outcome);
    }
    left = options.length - (std::chrono::steady_clock::now() - start);
  }
  outcome.seconds = std::chrono::duration<double>{std::chrono::steady_clock::now() - start}.count();
  return outcome;
}

int run(const Context& context, const Options& options) {
  if (options.worker) {
    const auto done = work();
    if (!done) {
      return report(context, done.error());
    }
    return *done ? kSuccess : kNo;
  }
  auto outcome = torture(context, options);
  if (!outcome) {
    return report(context, outcome.error());
  }
  if (context.json) {
    print_json(*outcome);
  } else {
    print_text(*outcome);
  }
  return outcome->findings.empty() ? kSuccess : kNo;
}

constexpr const char* kExamples =
    R"(Processes take locks under a random prefix in every way there is (exclusive,
shared, permits; tried, timed, cancelled, re-entrant) around a fenced resource,
while they are killed, stopped for longer than a lease lasts, and, on stores
that are reached over TCP, cut off, delayed, reset and robbed of replies. What
they saw is checked against docs/proof.md. Exit status 1: a violation was found.

Faults: kill stop partition partition-to partition-from delay reset cut refuse
swallow, and the groups process, network, all, none.

Examples:
  holdfast torture
  holdfast torture --url redis://localhost --minutes 10 --faults network
  holdfast torture --seconds 30 --processes 8 --seed 4711 --json
)";

}  // namespace
}  // namespace torture

void register_torture(CommandLine& line, const Context& context) {
  auto options = std::make_shared<torture::Options>();
  line.add("torture", "Break things on purpose and check the locks", "holdfast torture [OPTIONS]")
      .option("--minutes", "M", "How long",
              [options](const std::string& value) {
                return torture::read_length(value, "m", options->length);
              })
      .option("--seconds", "S", "How long; default 10",
              [options](const std::string& value) {
                return torture::read_length(value, "s", options->length);
              })
      .option("--seed", "N", "The same dice as in that run",
              [options](const std::string& value) {
                return torture::read_number(value, 0, ~std::uint64_t{0}, options->seed.emplace());
              })
      .option("--faults", "LIST", "Which, comma-separated; default all that the store allows",
              [options](const std::string& value) -> Result<void> {
                options->faults = value;
                return torture::parse_faults(value).map([](const auto&) {});
              })
      .option("--processes", "P", "How many; default 4",
              [options](const std::string& value) {
                return torture::read_number(value, 1, 64, options->processes);
              })
      .option("--threads", "T", "In each process; default 3",
              [options](const std::string& value) {
                return torture::read_number(value, 1, 64, options->threads);
              })
      .option("--min-grants", "N", "Go on, however long, until so many locks were granted",
              [options](const std::string& value) {
                return torture::read_number(value, 0, 1'000'000'000, options->min_grants);
              })
      .option(
          "--min-faults", "N",
          "Go on, however long, until so many faults were injected; with --min-grants they come "
          "in bursts, in that proportion to the grants",
          [options](const std::string& value) {
            return torture::read_number(value, 0, 1'000'000, options->min_faults);
          })
      .option("--at-most", "DURATION", "End after that, though there were fewer",
              into(options->at_most))
      .option("--ttl", "DURATION", "Of the leases; default 500ms or what the store needs",
              into(options->ttl))
      .option("--timeline", "FILE", "Where a violation is drawn; default holdfast-torture.html",
              into(options->timeline))
      .option("--events", "FILE", "Where all events are written, round by round; default nowhere",
              into(options->events))
      .hidden_flag("--worker", options->worker)
      .examples(torture::kExamples)
      .action([&context, options] { return torture::run(context, *options); });
}

}  // namespace holdfast::command
