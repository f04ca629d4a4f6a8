#include "run_options.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "context.h"
#include "duration.h"
#include "text.h"

namespace holdfast::command {
namespace {

tl::unexpected<Error> bad(std::string text) {
  return fail(ErrorCode::invalid_argument, std::move(text));
}

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

Reader wait_into(std::optional<Duration>& wait) {
  return [&wait](const std::string& value) -> Result<void> {
    if (value == "forever") {
      wait.reset();
      return {};
    }
    const auto parsed = parse_duration(value);
    if (!parsed) {
      return bad(parsed.error().text + "; or write 0 or forever");
    }
    wait = *parsed;
    return {};
  };
}

Reader permits_into(AcquireOptions& acquire) {
  return [&acquire](const std::string& value) -> Result<void> {
    const std::size_t slash = std::min(value.find('/'), value.size());
    const auto count = number(std::string_view{value}.substr(0, slash));
    const auto total = number(std::string_view{value}.substr(std::min(slash + 1, value.size())));
    if (!count || !total) {
      return bad("write K/N, e.g. 1/3 for one of three permits");
    }
    if (*count == 0 || *total == 0) {
      return bad("permits start at 1; write e.g. 1/3 for one of three permits");
    }
    if (*total > kMaxPermits) {
      return bad("there can be at most " + std::to_string(kMaxPermits) + " permits");
    }
    if (*count > *total) {
      return bad(std::to_string(*count) + " of " + std::to_string(*total) +
                 " permits can never be had; write e.g. 1/" + std::to_string(*total));
    }
    acquire.mode = Mode::permits;
    acquire.permits = *count;
    acquire.of = *total;
    return {};
  };
}

Reader on_lost_into(OnLost& on_lost) {
  return [&on_lost](const std::string& value) -> Result<void> {
    if (value != "term" && value != "ignore") {
      return bad("write term (end the command) or ignore (let it run on)");
    }
    on_lost = value == "term" ? OnLost::term : OnLost::ignore;
    return {};
  };
}

}  // namespace

void declare(Subcommand& subcommand, RunOptions& options) {
  AcquireOptions& acquire = options.acquire;
  subcommand.positional("NAME", "The lock: any 1 to 255 bytes", into(options.name))
      .option("-w,--wait", "DURATION", "How long to wait: 10s, 0, or forever (the default)",
              wait_into(acquire.wait))
      .flag("-n,--no-wait", options.no_wait, "The same as --wait 0")
      .option("--ttl", "DURATION",
              "How soon the lock frees itself if we die (default 30s); renewed till then",
              into(acquire.ttl))
      .flag("-s,--shared", options.shared, "Share it with other --shared holders")
      .option("--permits", "K/N", "Take K of N permits, e.g. 1/3: at most three at a time",
              permits_into(acquire))
      .option("--on-lost", "term|ignore",
              "If the lock is lost: end the command (the default), or let it run on",
              on_lost_into(options.on_lost))
      .option("--max-hold", "DURATION", "Stop renewing after this long; then the lock is lost",
              into(acquire.max_hold))
      .flag("--no-renew", options.no_renew, "Hold it for one ttl at most")
      .option("--grace", "DURATION",
              "SIGTERM comes this long before the lease ends (default ttl/5)", into(acquire.grace))
      .flag("-f,--follow", options.follow,
            "Stand for the lock again after the command's end or a loss, until a signal comes")
      .option("--rest", "DURATION", "With --follow: before standing again (default 1s)",
              into(options.rest))
      .option("--label", "TEXT", "What others see in 'holdfast ls' (default: the command)",
              into(options.label))
      .takes_command(options.command);
}

Result<void> check(RunOptions& options) {
  AcquireOptions& acquire = options.acquire;
  if (auto fine = check_name(options.name); !fine) {
    return fine;
  }
  if (acquire.ttl < kMinTtl || acquire.ttl > kMaxTtl) {
    return bad("--ttl must lie between " + spell_duration(kMinTtl) + " and " +
               spell_duration(kMaxTtl) + "; e.g. --ttl 30s");
  }
  if (options.no_wait && acquire.wait && *acquire.wait != Duration::zero()) {
    return bad("--no-wait and --wait contradict each other; give one of them");
  }
  if (options.shared && acquire.mode == Mode::permits) {
    return bad("--shared and --permits exclude each other; give one of them");
  }
  if (acquire.grace && *acquire.grace > acquire.ttl / 2) {
    return bad("--grace can be at most half the ttl: " + spell_duration(acquire.ttl / 2));
  }
  if (acquire.max_hold && *acquire.max_hold == Duration::zero()) {
    return bad("--max-hold must be longer than 0; e.g. --max-hold 1h");
  }
  if (options.follow && (options.no_wait || acquire.wait)) {
    return bad("--follow waits for ever; leave --wait and --no-wait out");
  }
  if (options.rest && !options.follow) {
    return bad("--rest needs --follow");
  }
  if (options.command.empty() || options.command.front().empty()) {
    return bad("there is no command to run; write: holdfast run NAME -- COMMAND [ARGS...]");
  }
  if (options.no_wait) {
    acquire.wait = Duration::zero();
  }
  if (options.shared) {
    acquire.mode = Mode::shared;
  }
  acquire.renew = !options.no_renew;
  return {};
}

}  // namespace holdfast::command
