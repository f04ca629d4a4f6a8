#include "context.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "exit_status.h"
#include "json.h"
#include "text.h"

namespace holdfast::command {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<fs::path> state_directory() {
  // As the XDG specification says: a relative path counts as unset.
  if (const fs::path state = environment("XDG_STATE_HOME"); state.is_absolute()) {
    return state / "holdfast";
  }
  fs::path home = environment("HOME");
  if (home.empty()) {
    const passwd* user = getpwuid(getuid());
    home = user == nullptr ? "" : user->pw_dir;
  }
  if (!home.is_absolute()) {
    return fail(ErrorCode::invalid_argument,
                "there is no home directory for the default store; give --url or set HOLDFAST_URL, "
                "e.g. sqlite:/srv/app/locks.db");
  }
  return home / ".local" / "state" / "holdfast";
}

Result<void> make_private_directory(const fs::path& directory) {
  std::error_code failure;
  fs::create_directories(directory.parent_path(), failure);
  if (!failure && mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    failure = {errno, std::generic_category()};
  }
  if (failure) {
    return fail(ErrorCode::unavailable,
                "cannot make the directory " + in_quotes(directory.native()) + ": " +
                    failure.message() + "; give --url or set HOLDFAST_URL",
                failure.value());
  }
  return {};
}

// A path may hold what means something else in a URL.
std::string percent_encoded(std::string_view path) {
  static constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  std::string text;
  for (const char c : path) {
    if (kPlain.find(c) != std::string_view::npos) {
      text += c;
    } else {
      text += "%" + hex({&c, 1});
    }
  }
  return text;
}

}  // namespace

Result<std::string> store_url(const Context& context) {
  if (!context.url.empty()) {
    return context.url;
  }
  if (std::string url = environment("HOLDFAST_URL"); !url.empty()) {
    return url;
  }
  const auto directory = state_directory();
  if (!directory) {
    return tl::unexpected{directory.error()};
  }
  if (const auto made = make_private_directory(*directory); !made) {
    return tl::unexpected{made.error()};
  }
  return "sqlite:" + percent_encoded((*directory / "locks.db").native());
}

Result<Client> open_store(const Context& context, std::string label) {
  const auto url = store_url(context);
  if (!url) {
    return tl::unexpected{url.error()};
  }
  return Client::open(*url, {.label = std::move(label)});
}

Result<void> check_name(std::string_view name) {
  if (name.empty()) {
    return fail(ErrorCode::invalid_argument, "the name is empty; a lock needs a name of 1 to " +
                                                 std::to_string(kMaxNameBytes) + " bytes");
  }
  if (name.size() > kMaxNameBytes) {
    return fail(ErrorCode::invalid_argument, "the name has " + std::to_string(name.size()) +
                                                 " bytes; at most " +
                                                 std::to_string(kMaxNameBytes) + " are allowed");
  }
  return {};
}

int report(const Context& context, const Error& error) {
  return report(context, error, exit_status_of(error.code));
}

int report(const Context& context, const Error& error, int exit_status) {
  // Whatever was printed comes first, also where both go to one file.
  std::cout.flush();
  if (context.json) {
    std::cerr << json(error, exit_status) << '\n';
  } else {
    std::cerr << "holdfast: " << harmless(error.text) << '\n';
  }
  return exit_status;
}

void warn(const Context& context, const std::string& text) {
  if (context.json) {
    std::cerr << json_object({{"warning", text}}) << '\n';
  } else {
    std::cerr << "holdfast: " << harmless(text) << '\n';
  }
}

}  // namespace holdfast::command
