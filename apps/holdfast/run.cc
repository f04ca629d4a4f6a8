#include <csignal>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include "child.h"
#include "commands.h"
#include "exit_status.h"
#include "guard.h"
#include "program.h"
#include "run_options.h"
#include "signals.h"
#include "supervisor.h"
#include "terminal.h"
#include "text.h"
#include "waiting.h"

namespace holdfast::command {
namespace {

int refuse(const Context& context, const Refusal& refusal) {
  return report(context, {ErrorCode::invalid_argument, refusal.text, {}}, refusal.exit_status);
}

ChildSpec spec_of(const RunOptions& options, const std::string& program, const Lease& lease) {
  std::optional<std::string> token;
  if (lease.token()) {
    token = std::to_string(*lease.token());
  }
  return {
      .program = program,
      .words = options.command,
      .environment = environment_with({{"HOLDFAST_NAME", options.name}, {"HOLDFAST_TOKEN", token}}),
      .orphan = options.on_lost == OnLost::term ? Orphan::ends : Orphan::lives};
}

std::string why_lost(const Lease& lease) {
  const auto reason = lease.loss();
  if (reason == LossReason::revoked) {
    return "taken away with 'holdfast release --force'";
  }
  if (reason == LossReason::expired) {
    return "the store gave it up";
  }
  return "its lease ended without renewal";
}

// Both the command's own end and a lost lock lead here.
int let_go(const Context& context, const RunOptions& options, Lease& lease, int status,
           bool was_lost) {
  const auto released = lease.release();
  if (!released && released.error().code == ErrorCode::lease_lost && !was_lost) {
    was_lost = true;
    warn(context, "lost the lock " + in_quotes(options.name) + " (" + why_lost(lease) +
                      ") while the command ran; check what it did");
  } else if (!released && released.error().code != ErrorCode::lease_lost) {
    warn(context, "the store did not confirm the release of " + in_quotes(options.name) + " (" +
                      released.error().text + "); it frees itself when its ttl has passed");
  }
  return was_lost && options.on_lost == OnLost::term ? kLost : status;
}

struct Ending {
  int status = kSuccess;
  bool for_good = false;  // no further term with --follow
};

Ending run_command(const Context& context, const RunOptions& options, const std::string& program,
                   Lease lease, SignalInbox& signals) {
  Terminal terminal;
  const bool ends_in_time = options.on_lost == OnLost::term;
  Guard guard = ends_in_time ? Guard::start() : Guard{};
  auto child = Child::start(spec_of(options, program, lease), signals, terminal);
  if (!child) {
    guard.dismiss();
    (void)lease.release();
    return {refuse(context, child.error()), true};
  }
  bool lost = false;
  const auto when_lost = [&] {
    lost = true;
    warn(context, "lost the lock " + in_quotes(options.name) + " (" + why_lost(lease) + "); " +
                      (ends_in_time ? "ending the command" : "the command runs on"));
  };
  Supervisor supervisor{{.child = *child,
                         .lease = lease,
                         .signals = signals,
                         .terminal = terminal,
                         .guard = std::move(guard),
                         .ttl = options.acquire.ttl,
                         .grace = options.acquire.grace.value_or(options.acquire.ttl / 5),
                         .on_lost = options.on_lost,
                         .when_lost = when_lost}};
  const int status = supervisor.run();
  return {let_go(context, options, lease, status, lost), supervisor.was_interrupted()};
}

// The signal that ended the rest early, if one did.
std::optional<int> rest(SignalInbox& signals, Duration time) {
  const auto until = std::chrono::steady_clock::now() + time;
  Duration left = time;
  while (left > Duration::zero()) {
    const auto number = signals.wait_for(std::min<Duration>(left, std::chrono::hours{1}));
    if (number == SIGTSTP) {
      raise(SIGSTOP);
    } else if (number && *number != SIGCONT && *number != SIGCHLD) {
      return number;
    }
    left = until - std::chrono::steady_clock::now();
  }
  return std::nullopt;
}

// Stands for the lock again and again, until a signal or a mistake ends it.
int follow(const Context& context, const RunOptions& options, const std::string& program,
           Client& client, SignalInbox& signals) {
  while (true) {
    auto lease = wait_for_lock(context, client, options.name, options.acquire, signals);
    if (lease) {
      const Ending ending = run_command(context, options, program, std::move(*lease), signals);
      if (ending.for_good) {
        return ending.status;
      }
    } else if (lease.error() != kUnavailable) {
      return lease.error();
    }
    if (const auto number = rest(signals, options.rest.value_or(std::chrono::seconds{1}))) {
      return kSignalBase + *number;
    }
  }
}

int run(const Context& context, RunOptions& options) {
  if (const auto fine = check(options); !fine) {
    return report(context, fine.error());
  }
  const auto program = find_program(options.command.front());
  if (!program) {
    return refuse(context, program.error());
  }
  // Before the library starts its threads, so that they leave signals to us.
  SignalInbox signals{SIGTERM, SIGINT,  SIGHUP,  SIGQUIT, SIGUSR1,
                      SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD};
  signals.ignore(SIGPIPE);
  signals.ignore(SIGTTOU);

  const std::string label = options.label.empty()
                                ? std::filesystem::path{options.command.front()}.filename().string()
                                : options.label;
  auto client = open_store(context, label);
  if (!client) {
    return report(context, client.error());
  }
  if (options.follow) {
    return follow(context, options, *program, *client, signals);
  }
  auto lease = wait_for_lock(context, *client, options.name, options.acquire, signals);
  if (!lease) {
    return lease.error();
  }
  return run_command(context, options, *program, std::move(*lease), signals).status;
}

constexpr const char* kExamples =
    R"(Waits for the lock, runs the command while holding it, and releases it. The
command finds the lock's name in HOLDFAST_NAME and its fencing token in
HOLDFAST_TOKEN. Signals are passed on to it. If the lock is lost, the command
and all it started get SIGTERM, then SIGKILL, before anybody else can have it.

Exit status: the command's own (128 + N if signal N ended it), or
   75  busy, or not free in time      76  the lock was lost
   69  the store cannot be used       64  a mistake in these words
  127  the command was not found     126  it cannot be executed

Examples:
  holdfast run backup -- ./backup.sh
  holdfast run deploy --wait 10s -- make deploy
  holdfast run report -n -- ./report.sh || echo "somebody else is at it"
  holdfast run api --permits 1/3 -- ./crawl.sh     at most three at a time
  holdfast run db --shared -- ./read.sh            many readers, or one writer
  holdfast run mail --follow -- ./mailer           on one machine at a time, for ever
)";

}  // namespace

void register_run(CommandLine& line, const Context& context) {
  auto options = std::make_shared<RunOptions>();
  Subcommand subcommand = line.add("run", "Run a command while holding a lock",
                                   "holdfast run NAME [OPTIONS] -- COMMAND [ARGS...]");
  declare(subcommand, *options);
  subcommand.examples(kExamples).action([&context, options] { return run(context, *options); });
}

}  // namespace holdfast::command
