// The command-line program: parses, wires, reports. What a subcommand does
// stands in the file of its name.

#include <fcntl.h>
#include <unistd.h>

#include <exception>
#include <iostream>

#include "command_line.h"
#include "commands.h"
#include "context.h"
#include "exit_status.h"
#include "secrets.h"

namespace holdfast::command {
namespace {

// A descriptor that we open must not become the standard input or output of
// a program that was started without one.
void keep_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) {
      return;
    }
  }
}

int run_program(int argc, char** argv) {
  keep_standard_descriptors();
  Context context;
  CommandLine line{context};
  register_run(line, context);
  register_ls(line, context);
  register_show(line, context);
  register_watch(line, context);
  register_release(line, context);
  register_task(line, context);
  register_init(line, context);
  register_doctor(line, context);
  register_bench(line, context);
  register_torture(line, context);
  register_version(line, context);

  const auto action = line.parse(argc, argv);
  hide_passwords(argc, argv);
  if (!action) {
    return report(context, action.error());
  }
  const int status = (*action)();
  if (status == kSuccess && !std::cout.flush()) {
    return report(context, {ErrorCode::unavailable, "cannot write to standard output", {}},
                  kOutput);
  }
  return status;
}

}  // namespace
}  // namespace holdfast::command

int main(int argc, char** argv) {
  try {
    return holdfast::command::run_program(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "holdfast: internal error: " << error.what() << '\n';
    return holdfast::command::kInternal;
  }
}
