#include <algorithm>
#include <iostream>
#include <memory>

#include "commands.h"
#include "duration.h"
#include "exit_status.h"
#include "json.h"
#include "text.h"

namespace holdfast::command {
namespace {

struct Options {
  std::string name;
  bool force = false;
  bool now = false;
};

constexpr const char* kWhyForce =
    "a lock is released by its holder; to take it away from whoever holds it, add --force "
    "(the holder is told to stop) or --force --now (free at once: two holders may overlap)";

// When the last of the revoked holders is gone at the latest.
Duration free_within(Client& client, const std::string& name) {
  Duration longest{};
  if (const auto lock = client.show(name); lock) {
    for (const HolderInfo& holder : lock->holders) {
      longest = std::max(longest, holder.expires_in);
    }
  }
  return longest;
}

void print(const Options& options, std::uint32_t holders, Duration within) {
  const std::string whom = std::to_string(holders) + (holders == 1 ? " holder" : " holders");
  if (options.now) {
    std::cout << "freed " << in_quotes(options.name) << " of " << whom
              << "; they may still be at work: check what they protect\n";
  } else if (within > Duration::zero()) {
    std::cout << "revoked " << whom << " of " << in_quotes(options.name)
              << "; free when they let go, at the latest in " << human_duration(within) << '\n';
  } else {
    std::cout << "revoked " << whom << " of " << in_quotes(options.name) << "; free\n";
  }
}

int release(const Context& context, const Options& options) {
  if (!options.force) {
    return report(context, {ErrorCode::invalid_argument, kWhyForce, {}});
  }
  if (const auto fine = check_name(options.name); !fine) {
    return report(context, fine.error());
  }
  auto client = open_store(context);
  if (!client) {
    return report(context, client.error());
  }
  const auto count = client->force_release(options.name, options.now ? Force::now : Force::revoke);
  if (!count) {
    return report(context, count.error());
  }
  if (*count == 0) {
    return report(
        context,
        {ErrorCode::invalid_argument,
         "nobody holds " + in_quotes(options.name) + "; 'holdfast ls' lists the locks in use",
         {}},
        kNo);
  }
  const Duration within = options.now ? Duration::zero() : free_within(*client, options.name);
  if (context.json) {
    const auto at_most = std::chrono::duration_cast<std::chrono::milliseconds>(within).count();
    std::cout << json_object({{"name", options.name}},
                             {{"holders", *count}, {"free_within_ms", at_most}})
              << '\n';
  } else {
    print(options, *count, within);
  }
  return kSuccess;
}

constexpr const char* kExamples =
    R"(With --force the holders are revoked: they cannot renew, are told that the lock
is lost, and nobody else gets it until they let go or their lease ends. With
--now it is free at once, and the old holders may still be at work.
Exit status 1 if nobody holds it.

Examples:
  holdfast release backup --force
  holdfast release backup --force --now    only when the holder is surely dead
)";

}  // namespace

void register_release(CommandLine& line, const Context& context) {
  auto options = std::make_shared<Options>();
  line.add("release", "Take a lock away from its holders (--force)",
           "holdfast release NAME --force [--now] [OPTIONS]")
      .positional("NAME", "The lock", into(options->name))
      .flag("--force", options->force, "Yes, whoever holds it")
      .flag("--now", options->now, "Do not wait for the holders: they may overlap with the next")
      .examples(kExamples)
      .action([&context, options] { return release(context, *options); });
}

}  // namespace holdfast::command
