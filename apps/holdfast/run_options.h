#pragma once

#include <holdfast/error.h>
#include <holdfast/options.h>
#include <optional>
#include <string>
#include <vector>

#include "command_line.h"
#include "supervisor.h"

namespace holdfast::command {

struct RunOptions {
  std::string name;
  std::string label;
  AcquireOptions acquire;
  bool no_wait = false;
  bool shared = false;
  bool no_renew = false;
  OnLost on_lost = OnLost::term;
  bool follow = false;  // stand again after the command's end, or a loss
  std::optional<Duration> rest;
  std::vector<std::string> command;
};

// Adds the options of `run`; `options` must outlive the parsing.
void declare(Subcommand& subcommand, RunOptions& options);

// What no single option can see; also settles mode and wait. Does not touch
// the store. invalid_argument.
Result<void> check(RunOptions& options);

}  // namespace holdfast::command
