#include <algorithm>
#include <iostream>

#include "commands.h"
#include "exit_status.h"
#include "json.h"
#include "secrets.h"
#include "table.h"
#include "text.h"

namespace holdfast::command {
namespace {

Colour colour_of(Finding::Level level) {
  switch (level) {
    case Finding::Level::ok:
      return Colour::green;
    case Finding::Level::warning:
      return Colour::yellow;
    case Finding::Level::problem:
      return Colour::red;
  }
  return Colour::none;
}

void print(const std::vector<Finding>& findings) {
  const Paint paint;
  Table table{{"", "TOPIC", "FINDING"}};
  for (const Finding& finding : findings) {
    table.add({{std::string{to_string(finding.level)}, colour_of(finding.level)},
               {printable(finding.topic)},
               {harmless(finding.text)}});
    if (!finding.advice.empty()) {
      table.add({{""}, {""}, {"-> " + harmless(finding.advice), Colour::bold}});
    }
  }
  table.print(std::cout, paint);
}

int doctor(const Context& context) {
  const auto url = store_url(context);
  if (!url) {
    return report(context, url.error());
  }
  auto client = Client::open(*url);
  if (!client) {
    return report(context, client.error());
  }
  const std::vector<Finding> findings = client->doctor();
  if (context.json) {
    std::cout << json(findings, redacted(*url)) << '\n';
  } else {
    std::cout << "store: " << redacted(*url) << "\n\n";
    print(findings);
  }
  const bool ill = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.level == Finding::Level::problem;
  });
  return ill ? kNo : kSuccess;
}

constexpr const char* kExamples =
    R"(Exit status: 0 if all is well (warnings included), 1 if there are problems,
69 if the store cannot be used at all.

Examples:
  holdfast doctor
  holdfast doctor --url sqlite:/srv/app/locks.db --json
)";

}  // namespace

void register_doctor(CommandLine& line, const Context& context) {
  line.add("doctor", "Check the store and say what to repair", "holdfast doctor [OPTIONS]")
      .examples(kExamples)
      .action([&context] { return doctor(context); });
}

}  // namespace holdfast::command
