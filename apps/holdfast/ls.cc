#include <algorithm>
#include <iostream>
#include <memory>

#include "commands.h"
#include "duration.h"
#include "exit_status.h"
#include "json.h"
#include "lock_text.h"
#include "table.h"
#include "text.h"

namespace holdfast::command {
namespace {

struct Options {
  std::string prefix;
  bool names = false;
};

// A lock is one line; of several holders the newest stands for the others.
std::vector<Table::Cell> row_of(const LockInfo& lock) {
  const std::string queue = std::to_string(lock.queue.size());
  const Colour queue_colour = lock.queue.empty() ? Colour::dim : Colour::yellow;
  if (lock.holders.empty()) {
    return {{printable(lock.name), Colour::bold},
            {"-"},
            {"-"},
            {"-"},
            {"-"},
            {"-"},
            {queue, queue_colour}};
  }
  const HolderInfo& newest =
      *std::max_element(lock.holders.begin(), lock.holders.end(),
                        [](const auto& a, const auto& b) { return a.token < b.token; });
  std::uint32_t permits = 0;
  for (const HolderInfo& holder : lock.holders) {
    permits += holder.permits;
  }
  std::string who = party_text(newest.party);
  if (lock.holders.size() > 1) {
    who += " +" + std::to_string(lock.holders.size() - 1);
  }
  return {{printable(lock.name), Colour::bold},
          {mode_text(newest.mode, permits, lock.limit)},
          {who, Colour::cyan},
          {token_text(newest.token)},
          {human_duration(newest.held_for)},
          {newest.revoked ? "revoked" : human_duration(newest.expires_in),
           newest.revoked ? Colour::red : Colour::none},
          {queue, queue_colour}};
}

void print(const std::vector<LockInfo>& locks) {
  Table table{{"NAME", "MODE", "HOLDER", "TOKEN", "HELD", "EXPIRES", "QUEUE"}};
  for (const LockInfo& lock : locks) {
    table.add(row_of(lock));
  }
  table.print(std::cout, Paint{});
}

int ls(const Context& context, const Options& options) {
  auto client = open_store(context);
  if (!client) {
    return report(context, client.error());
  }
  auto locks = client->list(options.prefix);
  if (!locks) {
    return report(context, locks.error());
  }
  std::sort(locks->begin(), locks->end(),
            [](const LockInfo& a, const LockInfo& b) { return a.name < b.name; });
  if (options.names) {
    for (const LockInfo& lock : *locks) {
      std::cout << printable(lock.name) << '\n';
    }
  } else if (context.json) {
    std::cout << json(*locks) << '\n';
  } else if (!locks->empty()) {
    print(*locks);
  }
  return kSuccess;
}

constexpr const char* kExamples =
    R"(HOLDER is label@host:pid (+N: N more; 'holdfast show' lists all). TOKEN rises
with every grant of the name. EXPIRES is when the store takes the lock back
unless the holder renews it. QUEUE is how many wait. Prints nothing if no lock
is in use.

Examples:
  holdfast ls
  holdfast ls seat:                        names that begin with 'seat:'
  holdfast ls --json | jq '.[].name'
)";

}  // namespace

void register_ls(CommandLine& line, const Context& context) {
  auto options = std::make_shared<Options>();
  line.add("ls", "List the locks in use: holder, token, queue", "holdfast ls [PREFIX] [OPTIONS]")
      .positional("[PREFIX]", "Only names that begin with this", into(options->prefix))
      .hidden_flag("--names", options->names)
      .examples(kExamples)
      .action([&context, options] { return ls(context, *options); });
}

}  // namespace holdfast::command
