#include <iostream>

#include "exit_status.h"
#include "json.h"
#include "task.h"
#include "text.h"

namespace holdfast::command {
namespace {

int refuse(const Context& context, std::string text) {
  return report(context, {ErrorCode::invalid_argument, std::move(text), {}});
}

}  // namespace

int forget_task_record(const Context& context, const TaskOptions& options) {
  if (options.name.empty()) {
    return refuse(context, "NAME is missing; write: holdfast task forget NAME");
  }
  if (has_run_options(options)) {
    return refuse(context,
                  "'task forget' takes a name and nothing else; see 'holdfast task --help'");
  }
  auto client = open_store(context);
  if (!client) {
    return report(context, client.error());
  }
  const auto forgotten = forget_task(*client, options.name);
  if (!forgotten) {
    return report(context, forgotten.error());
  }
  if (!*forgotten) {
    return report(context,
                  {ErrorCode::invalid_argument,
                   "there is no record of " + in_quotes(options.name) +
                       "; 'holdfast task ls' lists the tasks",
                   {}},
                  kNo);
  }
  if (context.json) {
    std::cout << json_object({{"name", options.name}}, {}) << '\n';
  } else {
    std::cout << "forgot the runs of " << in_quotes(options.name) << "; it may begin at once\n";
  }
  return kSuccess;
}

}  // namespace holdfast::command
