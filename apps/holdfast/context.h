#pragma once

#include <holdfast/client.h>
#include <holdfast/error.h>
#include <string>
#include <string_view>

namespace holdfast::command {

// What every subcommand is told.
struct Context {
  std::string url;    // --url; empty if not given
  bool json = false;  // --json
};

// --url, else HOLDFAST_URL, else a database file in the user's state
// directory, which is made if it is not there.
Result<std::string> store_url(const Context& context);

// The label is what others see in `holdfast ls`.
Result<Client> open_store(const Context& context, std::string label = {});

// 1 to 255 bytes; checked before the store is touched.
Result<void> check_name(std::string_view name);

// "holdfast: <text>" on standard error, or with --json an object on one line.
// Returns the exit status that the error stands for.
int report(const Context& context, const Error& error);
int report(const Context& context, const Error& error, int exit_status);
void warn(const Context& context, const std::string& text);

}  // namespace holdfast::command
