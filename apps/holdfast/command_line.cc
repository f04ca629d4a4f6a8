#include "command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "duration.h"
#include "exit_status.h"
#include "text.h"

namespace holdfast::command {

struct Subcommand::Impl {
  Context* context = nullptr;
  CLI::App* app = nullptr;
  std::string usage;
  std::vector<std::string>* command = nullptr;
  std::function<int()> action;
};

struct CommandLine::Impl {
  Context* context = nullptr;
  CLI::App app{"Locks for commands and processes, on the store you already run.", "holdfast"};
  std::vector<std::shared_ptr<Subcommand::Impl>> subcommands;
  bool wants_version = false;
};

namespace {

constexpr const char* kMainUsage = "holdfast COMMAND [OPTIONS]";
constexpr const char* kMainFooter = R"(Examples:
  holdfast run backup -- ./backup.sh           run a command under the lock 'backup'
  holdfast run deploy --wait 10s -- make       give up after 10 seconds (exit status 75)
  holdfast ls                                  who holds what, and who waits

The store is --url, else $HOLDFAST_URL, else a database file of yours
($XDG_STATE_HOME/holdfast/locks.db). 'holdfast COMMAND --help' tells more.
)";

class Help : public CLI::Formatter {
 public:
  explicit Help(std::string usage) : usage_{std::move(usage)} { column_width(26); }

  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "\nUsage: " + usage_ + "\n";
  }
  std::string make_footer(const CLI::App* app) const override { return app->get_footer(); }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 ? "" : " " + option->get_type_name();
  }

 private:
  std::string usage_;
};

tl::unexpected<Error> usage_error(std::string text) {
  return fail(ErrorCode::invalid_argument, std::move(text));
}

CLI::Option* declare(CLI::App& app, const std::string& names, const std::string& what,
                     const std::string& help, Reader reader) {
  const std::string shown = names.substr(names.rfind(',') + 1);
  auto* option = app.add_option(
      names,
      [reader = std::move(reader), shown](CLI::results_t values) {
        for (const std::string& value : values) {
          if (const auto result = reader(value); !result) {
            throw CLI::ValidationError{shown, result.error().text};
          }
        }
        return true;
      },
      help);
  // "[a,b]" is a name like any other, not a list.
  option->type_name(what)->expected(1)->allow_extra_args(false);
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  return option;
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word.front() == '-';
}

std::vector<std::string> long_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

std::string did_you_mean(const std::string& word, const std::string& help) {
  return word.empty() ? "see '" + help + "'" : "did you mean '" + word + "'? See '" + help + "'";
}

// The parser was told to keep what it does not know; this is better at saying
// what is wrong with it.
Result<void> refuse_extras(const CLI::App& app, bool takes_command, const std::string& help) {
  std::vector<std::string> extras = app.remaining();
  extras.erase(std::remove(extras.begin(), extras.end(), "--"), extras.end());
  if (extras.empty()) {
    return {};
  }
  const auto found = std::find_if(extras.begin(), extras.end(), is_option);
  if (found != extras.end()) {
    const std::string typed = found->substr(0, found->find('='));
    return usage_error("unknown option " + in_quotes(typed) + "; " +
                       did_you_mean(nearest(typed, long_options(app)), help));
  }
  const std::string& word = extras.front();
  if (takes_command) {
    return usage_error("unexpected " + in_quotes(word) +
                       "; write -- before the command: holdfast " + app.get_name() + " NAME -- " +
                       printable(word) + " ...");
  }
  return usage_error("unexpected " + in_quotes(word) + "; see '" + help + "'");
}

// Where the subcommand stands: the first word that is neither an option nor
// the value of one.
std::size_t first_plain_word(const std::vector<std::string>& words) {
  std::size_t i = 0;
  while (i < words.size() && is_option(words[i])) {
    i += words[i] == "--url" ? 2U : 1U;
  }
  return i;
}

// What follows `--` belongs to the command and must reach it untouched.
void cut_command(std::vector<std::string>& words, std::vector<std::string>& command) {
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (dashes != words.end()) {
    command.assign(dashes + 1, words.end());
    words.erase(dashes, words.end());
  }
}

std::string explain(const CLI::ParseError& error, const std::string& usage) {
  std::string text = error.what();
  if (error.get_name() == "RequiredError") {
    return text.substr(0, text.find(' ')) + " is missing; write: " + usage;
  }
  if (error.get_name() == "ArgumentMismatch") {
    return text.substr(0, text.find(':')) + " needs a value; write: " + usage;
  }
  return text;
}

}  // namespace

Reader into(std::string& text) {
  return [&text](const std::string& value) -> Result<void> {
    text = value;
    return {};
  };
}

Reader into(Duration& duration) {
  return [&duration](const std::string& value) -> Result<void> {
    const auto parsed = parse_duration(value);
    if (!parsed) {
      return tl::unexpected{parsed.error()};
    }
    duration = *parsed;
    return {};
  };
}

Reader into(std::optional<Duration>& duration) {
  return [&duration](const std::string& value) -> Result<void> {
    const auto parsed = parse_duration(value);
    if (!parsed) {
      return tl::unexpected{parsed.error()};
    }
    duration = *parsed;
    return {};
  };
}

Subcommand& Subcommand::flag(const std::string& names, bool& on, const std::string& help) {
  impl_->app->add_flag(names, on, help);
  return *this;
}

Subcommand& Subcommand::hidden_flag(const std::string& names, bool& on) {
  impl_->app->add_flag(names, on)->group("");
  return *this;
}

Subcommand& Subcommand::option(const std::string& names, const std::string& what,
                               const std::string& help, Reader reader) {
  declare(*impl_->app, names, what, help, std::move(reader));
  return *this;
}

Subcommand& Subcommand::repeatable(const std::string& names, const std::string& what,
                                   const std::string& help, Reader reader) {
  declare(*impl_->app, names, what, help, std::move(reader))
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return *this;
}

Subcommand& Subcommand::positional(const std::string& what, const std::string& help,
                                   Reader reader) {
  const bool optional = what.front() == '[';
  const std::string name = optional ? what.substr(1, what.size() - 2) : what;
  declare(*impl_->app, name, "", help, std::move(reader))->required(!optional);
  return *this;
}

Subcommand& Subcommand::examples(const std::string& text) {
  impl_->app->footer(text);
  return *this;
}

Subcommand& Subcommand::takes_command(std::vector<std::string>& command) {
  impl_->command = &command;
  return *this;
}

Subcommand& Subcommand::action(std::function<int()> action) {
  CLI::App& app = *impl_->app;
  declare(app, "--url", "URL", "The store; else $HOLDFAST_URL, else your state directory",
          into(impl_->context->url));
  app.add_flag("--json", impl_->context->json, "Print JSON; docs/cli.md lists the fields");
  impl_->action = std::move(action);
  return *this;
}

CommandLine::CommandLine(Context& context) : impl_{std::make_unique<Impl>()} {
  impl_->context = &context;
  CLI::App& app = impl_->app;
  app.require_subcommand(0, 1);
  app.allow_extras();
  app.formatter(std::make_shared<Help>(kMainUsage));
  app.footer(kMainFooter);
  app.set_help_flag("-h,--help", "Show this help");
  app.add_flag("--version", impl_->wants_version, "Show the version");
  declare(app, "--url", "URL", "The store, e.g. sqlite:/srv/app/locks.db", into(context.url));
  app.add_flag("--json", context.json, "Print JSON");
}

CommandLine::~CommandLine() = default;

Subcommand CommandLine::add(const std::string& name, const std::string& summary,
                            const std::string& usage) {
  auto made = std::make_shared<Subcommand::Impl>();
  made->app = impl_->app.add_subcommand(name, summary);
  made->context = impl_->context;
  made->usage = usage;
  made->app->allow_extras();
  made->app->formatter(std::make_shared<Help>(usage));
  made->app->set_help_flag("-h,--help", "Show this help");
  impl_->subcommands.push_back(made);
  return Subcommand{made};
}

Result<std::function<int()>> CommandLine::parse(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const std::size_t first = first_plain_word(words);
  const auto chosen =
      std::find_if(impl_->subcommands.begin(), impl_->subcommands.end(), [&](const auto& entry) {
        return first < words.size() && entry->app->get_name() == words[first];
      });
  Subcommand::Impl* subcommand = chosen == impl_->subcommands.end() ? nullptr : chosen->get();
  if (subcommand != nullptr && subcommand->command != nullptr) {
    cut_command(words, *subcommand->command);
  }

  CLI::App& app = impl_->app;
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp&) {
    return [text = app.help()] {
      std::cout << text;
      return kSuccess;
    };
  } catch (const CLI::ParseError& error) {
    return usage_error(explain(error, subcommand == nullptr ? kMainUsage : subcommand->usage));
  }
  if (subcommand == nullptr) {
    return without_subcommand(words, first);
  }
  const std::string help = "holdfast " + subcommand->app->get_name() + " --help";
  const bool takes_command = subcommand->command != nullptr;
  auto fine = refuse_extras(app, takes_command, help).and_then([&] {
    return refuse_extras(*subcommand->app, takes_command, help);
  });
  if (!fine) {
    return tl::unexpected{fine.error()};
  }
  return subcommand->action;
}

Result<std::function<int()>> CommandLine::without_subcommand(const std::vector<std::string>& words,
                                                             std::size_t first) {
  CLI::App& app = impl_->app;
  if (impl_->wants_version) {
    return version;
  }
  if (first < words.size()) {
    std::vector<std::string> known;
    for (const auto& entry : impl_->subcommands) {
      known.push_back(entry->app->get_name());
    }
    return usage_error("unknown command " + in_quotes(words[first]) + "; " +
                       did_you_mean(nearest(words[first], known), "holdfast --help"));
  }
  if (const auto fine = refuse_extras(app, false, "holdfast --help"); !fine) {
    return tl::unexpected{fine.error()};
  }
  return [text = app.help()] {
    std::cerr << text;
    return kUsage;
  };
}

}  // namespace holdfast::command
