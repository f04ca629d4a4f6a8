#include <iostream>
#include <memory>

#include "commands.h"
#include "exit_status.h"
#include "json.h"
#include "secrets.h"

namespace holdfast::command {
namespace {

int print_script(const Context& context, Client& client) {
  const auto script = client.init_script();
  if (!script) {
    return report(context, script.error());
  }
  if (context.json) {
    std::cout << json_object({{"script", *script}}) << '\n';
    return kSuccess;
  }
  std::cout << *script;
  if (!script->empty() && script->back() != '\n') {
    std::cout << '\n';
  }
  return kSuccess;
}

int init(const Context& context, bool print) {
  const auto url = store_url(context);
  if (!url) {
    return report(context, url.error());
  }
  auto client = Client::open(*url);
  if (!client) {
    return report(context, client.error());
  }
  if (print) {
    return print_script(context, *client);
  }
  if (const auto done = client->init(); !done) {
    return report(context, done.error());
  }
  if (context.json) {
    std::cout << json_object({{"store", redacted(*url)}, {"state", "ready"}}) << '\n';
  } else {
    std::cout << "ready: " << redacted(*url) << '\n';
  }
  return kSuccess;
}

constexpr const char* kExamples =
    R"(Most stores need no init: what is missing is made when it is first used.
Use it where the account that runs your locks may not create tables.

Examples:
  holdfast init                            make what the default store needs
  holdfast init --url sqlite:/srv/l.db --print    show it, for somebody else to run
)";

}  // namespace

void register_init(CommandLine& line, const Context& context) {
  auto print = std::make_shared<bool>(false);
  line.add("init", "Create what the store needs; harmless if it is there",
           "holdfast init [--print] [OPTIONS]")
      .flag("--print", *print, "Print the statements instead of running them")
      .examples(kExamples)
      .action([&context, print] { return init(context, *print); });
}

}  // namespace holdfast::command
