#include "task.h"

#include <memory>

#include "command_line.h"
#include "commands.h"
#include "text.h"

namespace holdfast::command {
namespace {

constexpr const char* kUsage =
    "holdfast task run NAME --at-most DURATION [OPTIONS] -- COMMAND [ARGS...]\n"
    "       holdfast task ls [PREFIX]\n"
    "       holdfast task forget NAME";

int task(const Context& context, const TaskOptions& options) {
  if (options.action == "run") {
    return run_task_command(context, options);
  }
  if (options.action == "ls") {
    return list_task_records(context, options);
  }
  if (options.action == "forget") {
    return forget_task_record(context, options);
  }
  return report(context, {ErrorCode::invalid_argument,
                          "there is no 'task " + printable(options.action) +
                              "'; write: holdfast task run, task ls or task forget",
                          {}});
}

constexpr const char* kExamples =
    R"(run: for cron or a timer on many hosts that share a store. One of them runs the
command, the others skip it and exit with 75. The store's clock decides: those of
the hosts may differ. The command is ended before --at-most is over.

ls: the last run of each task: when, where, how it ended, when the next may begin.

forget: erases the record of a task that does not run: it may begin at once, and
ls no longer shows it. Exit status 1 if there is none, 75 if it is running.

Exit status of run: the command's own, or
   75  skipped: it is running, or not due    76  the lock was lost while it ran
   69  the store cannot be used              64  a mistake in these words

Examples:
  holdfast task run report --at-most 10m --at-least 1m -- ./report.sh
  holdfast task run backup --at-most 2h --once-per 23h -- ./backup.sh
  holdfast task ls
  holdfast task forget report    let it run again before it is due
)";

}  // namespace

bool has_run_options(const TaskOptions& options) {
  return options.at_most || options.at_least || options.once_per || !options.label.empty() ||
         !options.command.empty();
}

void register_task(CommandLine& line, const Context& context) {
  auto options = std::make_shared<TaskOptions>();
  line.add("task", "Run a scheduled command once in a cluster; show the last runs", kUsage)
      .positional("ACTION", "run, ls or forget", into(options->action))
      .positional("[NAME]", "run, forget: the task, 1 to 241 bytes. ls: only names that begin so",
                  into(options->name))
      .option("--at-most", "DURATION", "The longest that a run may take; it must be given",
              into(options->at_most))
      .option("--at-least", "DURATION", "No other run earlier than this after the last began",
              into(options->at_least))
      .option("--once-per", "DURATION",
              "No other run earlier than this after the last that succeeded began",
              into(options->once_per))
      .option("--label", "TEXT", "What others see in 'holdfast ls' (default: the command)",
              into(options->label))
      .takes_command(options->command)
      .examples(kExamples)
      .action([&context, options] { return task(context, *options); });
}

}  // namespace holdfast::command
