#include <csignal>

#include <cerrno>
#include <ctime>
#include <iomanip>
#include <iostream>
#include <memory>

#include "changes.h"
#include "commands.h"
#include "duration.h"
#include "exit_status.h"
#include "json.h"
#include "lock_text.h"
#include "signals.h"
#include "table.h"
#include "text.h"

namespace holdfast::command {
namespace {

constexpr Duration kShortestInterval = std::chrono::milliseconds{10};
constexpr Duration kLongestInterval = std::chrono::hours{1};

struct Options {
  std::string prefix;
  Duration interval = std::chrono::milliseconds{500};
};

Colour colour_of(Happening what) {
  switch (what) {
    case Happening::acquired:
      return Colour::green;
    case Happening::queued:
      return Colour::yellow;
    case Happening::revoked:
    case Happening::expired:
      return Colour::red;
    case Happening::released:
    case Happening::left:
      return Colour::dim;
  }
  return Colour::none;
}

void print(const Change& change, const Paint& paint) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::string what{to_string(change.what)};
  what.resize(8, ' ');
  std::cout << std::put_time(&local, "%H:%M:%S") << "  " << paint(colour_of(change.what), what)
            << "  " << printable(change.name) << "  " << party_text(change.party) << "  "
            << mode_text(change.mode, change.permits, 0);
  if (change.token) {
    std::cout << "  token " << *change.token;
  }
  std::cout << "  queue " << change.queue << '\n';
}

Result<void> check(const Options& options) {
  if (options.interval < kShortestInterval || options.interval > kLongestInterval) {
    return fail(ErrorCode::invalid_argument, "--interval must lie between " +
                                                 spell_duration(kShortestInterval) + " and " +
                                                 spell_duration(kLongestInterval));
  }
  return {};
}

int watch(const Context& context, const Options& options) {
  if (const auto fine = check(options); !fine) {
    return report(context, fine.error());
  }
  SignalInbox signals{SIGINT, SIGTERM, SIGHUP};
  signals.ignore(SIGPIPE);  // to leave by the door when the reader is gone
  auto client = open_store(context);
  if (!client) {
    return report(context, client.error());
  }
  Changes changes;
  const Paint paint;
  do {
    const auto locks = client->list(options.prefix);
    if (!locks) {
      return report(context, locks.error());
    }
    for (const Change& change : changes.look(*locks, std::chrono::steady_clock::now())) {
      if (context.json) {
        std::cout << json(change) << '\n';
      } else {
        print(change, paint);
      }
    }
    if (!std::cout.flush()) {
      return errno == EPIPE ? kSignalBase + SIGPIPE : kSuccess;  // main says what is wrong
    }
  } while (!signals.wait_for(options.interval));
  return kSuccess;
}

constexpr const char* kExamples =
    R"(Prints what there is, then every change: acquired, queued, left (the queue),
revoked, released, expired. Looks every --interval; what begins and ends in
between is not seen. Ends with Ctrl-C.

Examples:
  holdfast watch
  holdfast watch seat: --interval 100ms
  holdfast watch --json | jq -r 'select(.event == "expired") | .name'
)";

}  // namespace

void register_watch(CommandLine& line, const Context& context) {
  auto options = std::make_shared<Options>();
  line.add("watch", "Print changes as they happen", "holdfast watch [PREFIX] [OPTIONS]")
      .positional("[PREFIX]", "Only names that begin with this", into(options->prefix))
      .option("--interval", "DURATION", "How often to look (default 500ms)",
              into(options->interval))
      .examples(kExamples)
      .action([&context, options] { return watch(context, *options); });
}

}  // namespace holdfast::command
