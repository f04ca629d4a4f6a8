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

void print_holders(const LockInfo& lock, const Paint& paint) {
  Table table{{"HOLDER", "MODE", "TOKEN", "HELD", "EXPIRES"}};
  for (const HolderInfo& holder : lock.holders) {
    table.add({{party_text(holder.party), Colour::cyan},
               {mode_text(holder.mode, holder.permits, lock.limit)},
               {token_text(holder.token)},
               {human_duration(holder.held_for)},
               {human_duration(holder.expires_in) + (holder.revoked ? " (revoked)" : ""),
                holder.revoked ? Colour::red : Colour::none}});
  }
  table.print(std::cout, paint);
}

void print_queue(const LockInfo& lock, const Paint& paint) {
  Table table{{"WAITER", "MODE", "WAITING"}};
  for (const WaiterInfo& waiter : lock.queue) {
    table.add({{party_text(waiter.party), Colour::yellow},
               {mode_text(waiter.mode, waiter.permits, lock.limit)},
               {human_duration(waiter.waiting_for)}});
  }
  table.print(std::cout, paint);
}

void print(const LockInfo& lock) {
  const Paint paint;
  const bool free = lock.holders.empty();
  std::cout << paint(Colour::bold, printable(lock.name)) << ": " << (free ? "free" : "held");
  if (!lock.queue.empty()) {
    std::cout << ", " << lock.queue.size() << (lock.queue.size() == 1 ? " waits" : " wait");
  }
  std::cout << '\n';
  if (!free) {
    std::cout << '\n';
    print_holders(lock, paint);
  }
  if (!lock.queue.empty()) {
    std::cout << '\n';
    print_queue(lock, paint);
  }
}

int show(const Context& context, const std::string& name) {
  if (const auto fine = check_name(name); !fine) {
    return report(context, fine.error());
  }
  auto client = open_store(context);
  if (!client) {
    return report(context, client.error());
  }
  auto lock = client->show(name);
  if (!lock) {
    return report(context, lock.error());
  }
  lock->name = name;  // also where the store knows nothing of it
  if (context.json) {
    std::cout << json(*lock) << '\n';
  } else {
    print(*lock);
  }
  return kSuccess;
}

constexpr const char* kExamples = R"(A name that nobody uses is free; that is no error.

Examples:
  holdfast show backup
  holdfast show backup --json | jq '.holders[0].token'
)";

}  // namespace

void register_show(CommandLine& line, const Context& context) {
  auto name = std::make_shared<std::string>();
  line.add("show", "Show one lock: all holders, the queue in order", "holdfast show NAME [OPTIONS]")
      .positional("NAME", "The lock", into(*name))
      .examples(kExamples)
      .action([&context, name] { return show(context, *name); });
}

}  // namespace holdfast::command
