#include <csignal>

#include <filesystem>

#include "child.h"
#include "duration.h"
#include "exit_status.h"
#include "guard.h"
#include "program.h"
#include "signals.h"
#include "supervisor.h"
#include "task.h"
#include "terminal.h"
#include "text.h"

namespace holdfast::command {
namespace {

tl::unexpected<Error> bad(std::string text) {
  return fail(ErrorCode::invalid_argument, std::move(text));
}

Result<TaskGuard> guard_of(const TaskOptions& options) {
  if (options.name.empty()) {
    return bad("NAME is missing; write: holdfast task run NAME --at-most 10m -- COMMAND [ARGS...]");
  }
  if (!options.at_most) {
    return bad("--at-most is missing: how long a run may take, e.g. --at-most 10m");
  }
  if (*options.at_most == Duration::zero()) {
    return bad("--at-most must be longer than 0; e.g. --at-most 10m");
  }
  const Duration least = options.at_least.value_or(Duration::zero());
  if (least > *options.at_most) {
    return bad("--at-least is longer than --at-most; it can be at most " +
               spell_duration(*options.at_most));
  }
  if (options.once_per == Duration::zero()) {
    return bad("--once-per must be longer than 0; e.g. --once-per 23h");
  }
  if (options.command.empty() || options.command.front().empty()) {
    return bad(
        "there is no command to run; write: holdfast task run NAME --at-most 10m -- "
        "COMMAND [ARGS...]");
  }
  return TaskGuard{.name = options.name,
                   .at_most_for = *options.at_most,
                   .at_least_for = least,
                   .once_per = options.once_per};
}

int refuse(const Context& context, const Refusal& refusal) {
  return report(context, {ErrorCode::invalid_argument, refusal.text, {}}, refusal.exit_status);
}

int tell_skipped(const Context& context, const TaskOptions& options, const TaskOutcome& outcome) {
  std::string text = "skipped " + in_quotes(options.name) + ": " + outcome.why;
  if (outcome.until) {
    const auto left = *outcome.until - std::chrono::system_clock::now();
    text += "; try again in " +
            human_duration(std::max<Duration>(std::chrono::duration_cast<Duration>(left), {}));
  }
  return report(context, {ErrorCode::busy, text, {}});
}

std::string message_for(int status) {
  if (status == 0) {
    return "";
  }
  return status > kSignalBase ? "signal " + std::to_string(status - kSignalBase)
                              : "exit status " + std::to_string(status);
}

// Runs the command to its end, or to the end of the lock.
tl::expected<int, Refusal> supervise(const Context& context, const TaskOptions& options,
                                     const std::string& program, TaskRun& run,
                                     SignalInbox& signals) {
  Lease& lease = run.lease();
  std::optional<std::string> token;
  if (lease.token()) {
    token = std::to_string(*lease.token());
  }
  Terminal terminal;
  Guard guard = Guard::start();
  auto child = Child::start({.program = program,
                             .words = options.command,
                             .environment = environment_with(
                                 {{"HOLDFAST_NAME", options.name}, {"HOLDFAST_TOKEN", token}}),
                             .orphan = Orphan::ends},
                            signals, terminal);
  if (!child) {
    guard.dismiss();
    return tl::unexpected{child.error()};
  }
  const auto when_lost = [&] {
    warn(context, "the task " + in_quotes(options.name) +
                      " lost its lock, or took longer than --at-most; ending the command");
  };
  Supervisor supervisor{{.child = *child,
                         .lease = lease,
                         .signals = signals,
                         .terminal = terminal,
                         .guard = std::move(guard),
                         .ttl = run.ttl(),
                         .grace = run.ttl() / kGracesPerTtl,
                         .on_lost = OnLost::term,
                         .when_lost = when_lost}};
  return supervisor.run();
}

}  // namespace

int run_task_command(const Context& context, const TaskOptions& options) {
  const auto guard = guard_of(options);
  if (!guard) {
    return report(context, guard.error());
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
  auto start = begin_task(*client, *guard);
  if (!start) {
    return report(context, start.error());
  }
  if (!start->run) {
    return tell_skipped(context, options, start->skipped);
  }
  const auto status = supervise(context, options, *program, *start->run, signals);
  if (!status) {
    (void)start->run->finish(TaskStatus::failed, status.error().text);
    return refuse(context, status.error());
  }
  const TaskOutcome outcome = start->run->finish(
      *status == 0 ? TaskStatus::succeeded : TaskStatus::failed, message_for(*status));
  if (outcome.end == TaskEnd::lost || (outcome.end == TaskEnd::ran && !outcome.why.empty())) {
    warn(context, "task " + in_quotes(options.name) + ": " + outcome.why);
  }
  return outcome.end == TaskEnd::lost ? kLost : *status;
}

}  // namespace holdfast::command
