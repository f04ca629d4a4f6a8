#include <csignal>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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

// What the command holds: the lock that it is named after, and others.
struct Held {
  Lease lease;
  LeaseSet others;

  explicit Held(std::vector<Lease> leases) : lease{std::move(leases.front())} {
    leases.erase(leases.begin());
    others = LeaseSet{std::move(leases)};
  }
  const LeaseSet* more() const noexcept { return others.size() == 0 ? nullptr : &others; }

  // The first that is lost; the first of all if none is.
  const Lease& lost() const {
    const auto found = std::ranges::find_if(
        others.leases(), [](const Lease& each) { return each.loss() || !each.is_alive(); });
    return lease.loss() || found == others.leases().end() ? lease : *found;
  }

  Result<void> release() {
    auto first = lease.release();
    auto rest = others.size() == 0 ? Result<void>{} : others.release();
    return first ? rest : first;
  }
};

std::vector<Variable> variables_of(const Lease& lease, const std::string& suffix) {
  std::optional<std::string> token;
  if (lease.token()) {
    token = std::to_string(*lease.token());
  }
  return {{"HOLDFAST_NAME" + suffix, lease.name()}, {"HOLDFAST_TOKEN" + suffix, token}};
}

ChildSpec spec_of(const RunOptions& options, const std::string& program, const Held& held) {
  std::vector<Variable> variables = variables_of(held.lease, "");
  for (std::size_t i = 0; i < held.others.size(); ++i) {
    std::ranges::copy(variables_of(held.others[i], "_" + std::to_string(i + 2)),
                      std::back_inserter(variables));
  }
  return {.program = program,
          .words = options.command,
          .environment = environment_with(variables),
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
int let_go(const Context& context, const RunOptions& options, Held& held, int status,
           bool was_lost) {
  const std::string lost = held.lost().name();  // gone with the release
  const auto released = held.release();
  if (!released && released.error().code == ErrorCode::lease_lost && !was_lost) {
    was_lost = true;
    warn(context, "lost the lock " + in_quotes(lost) + " (" + why_lost(held.lost()) +
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
                   Held held, SignalInbox& signals) {
  Terminal terminal;
  const bool ends_in_time = options.on_lost == OnLost::term;
  Guard guard = ends_in_time ? Guard::start() : Guard{};
  auto child = Child::start(spec_of(options, program, held), signals, terminal);
  if (!child) {
    guard.dismiss();
    (void)held.release();
    return {refuse(context, child.error()), true};
  }
  bool lost = false;
  const auto when_lost = [&] {
    lost = true;
    warn(context, "lost the lock " + in_quotes(held.lost().name()) + " (" + why_lost(held.lost()) +
                      "); " + (ends_in_time ? "ending the command" : "the command runs on"));
  };
  Supervisor supervisor{{.child = *child,
                         .lease = held.lease,
                         .signals = signals,
                         .terminal = terminal,
                         .guard = std::move(guard),
                         .ttl = options.acquire.ttl,
                         .grace = options.acquire.grace.value_or(options.acquire.ttl / 5),
                         .on_lost = options.on_lost,
                         .when_lost = when_lost,
                         .others = held.more()}};
  const int status = supervisor.run();
  return {let_go(context, options, held, status, lost), supervisor.was_interrupted()};
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

std::vector<std::string> names_of(const RunOptions& options) {
  std::vector<std::string> names{options.name};
  std::ranges::copy(options.also, std::back_inserter(names));
  return names;
}

// Stands for the lock again and again, until a signal or a mistake ends it.
int follow(const Context& context, const RunOptions& options, const std::string& program,
           Client& client, SignalInbox& signals) {
  while (true) {
    auto leases = wait_for_locks(context, client, names_of(options), options.acquire, signals);
    if (leases) {
      const Ending ending =
          run_command(context, options, program, Held{std::move(*leases)}, signals);
      if (ending.for_good) {
        return ending.status;
      }
    } else if (leases.error() != kUnavailable) {
      return leases.error();
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
  auto leases = wait_for_locks(context, *client, names_of(options), options.acquire, signals);
  if (!leases) {
    return leases.error();
  }
  return run_command(context, options, *program, Held{std::move(*leases)}, signals).status;
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
  holdfast run a --also b -- ./copy.sh a b         both locks, or none
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
