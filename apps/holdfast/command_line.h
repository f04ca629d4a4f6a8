#pragma once

#include <holdfast/error.h>
#include <holdfast/options.h>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "context.h"

// What the program can be asked, in our own words: only command_line.cc sees
// the library that parses them (its header takes seconds to compile).
namespace holdfast::command {

// Takes the value of an option; invalid_argument with what to write instead.
using Reader = std::function<Result<void>(const std::string& value)>;
Reader into(std::string& text);
Reader into(Duration& duration);
Reader into(std::optional<Duration>& duration);

// Builds one subcommand. The variables and readers must live until its action
// has run; the action's captures are the place to keep them.
class Subcommand {
 public:
  struct Impl;
  explicit Subcommand(std::shared_ptr<Impl> impl) : impl_{std::move(impl)} {}

  // names: "-n,--no-wait"; what: "DURATION".
  Subcommand& flag(const std::string& names, bool& on, const std::string& help);
  Subcommand& option(const std::string& names, const std::string& what, const std::string& help,
                     Reader reader);
  // May be given several times; else the last one counts.
  Subcommand& repeatable(const std::string& names, const std::string& what, const std::string& help,
                         Reader reader);
  // In the order of the calls. "NAME" must be given, "[PREFIX]" may be.
  Subcommand& positional(const std::string& what, const std::string& help, Reader reader);
  // For our own scripts; not in the help.
  Subcommand& hidden_flag(const std::string& names, bool& on);
  Subcommand& examples(const std::string& text);
  // The words after `--` are a command, not ours to read.
  Subcommand& takes_command(std::vector<std::string>& command);
  // Comes last, and adds the options that all subcommands have.
  Subcommand& action(std::function<int()> action);

 private:
  std::shared_ptr<Impl> impl_;
};

class CommandLine {
 public:
  explicit CommandLine(Context& context);  // --url and --json go there
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // What --version does.
  std::function<int()> version;

  Subcommand add(const std::string& name, const std::string& summary, const std::string& usage);

  // What to do, or invalid_argument. Asking for help is an action as well.
  Result<std::function<int()>> parse(int argc, char** argv);

 private:
  Result<std::function<int()>> without_subcommand(const std::vector<std::string>& words,
                                                  std::size_t first);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::command
