#include "program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <system_error>

#include "exit_status.h"
#include "text.h"

namespace holdfast::command {
namespace {

constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

// 0, or the errno that exec would give.
int check_file(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    return errno;
  }
  if (S_ISDIR(info.st_mode)) {
    return EISDIR;
  }
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

}  // namespace

Refusal refusal_of(const std::string& word, int error_number) {
  if (error_number == ENOENT || error_number == ENOTDIR) {
    return {kNotFound, in_quotes(word) + " was not found; check its spelling and the PATH"};
  }
  if (error_number == EISDIR) {
    return {kNotExecutable, in_quotes(word) + " is a directory; name a program"};
  }
  if (error_number == EACCES) {
    return {kNotExecutable, in_quotes(word) + " is not executable; try chmod +x, or sh FILE"};
  }
  return {kNotExecutable,
          in_quotes(word) + " cannot be run: " + std::generic_category().message(error_number)};
}

tl::expected<std::string, Refusal> find_program(const std::string& word) {
  if (word.find('/') != std::string::npos) {
    if (const int failure = check_file(word); failure != 0) {
      return tl::unexpected{refusal_of(word, failure)};
    }
    return word;
  }
  const char* path = std::getenv("PATH");
  std::istringstream directories{path == nullptr ? kDefaultPath : path};
  int failure = ENOENT;
  for (std::string directory; !word.empty() && std::getline(directories, directory, ':');) {
    const std::string candidate = (directory.empty() ? "." : directory) + "/" + word;
    const int found = check_file(candidate);
    if (found == 0) {
      return candidate;
    }
    if (found == EACCES) {
      failure = EACCES;  // as shells do: something better may follow in the PATH
    }
  }
  return tl::unexpected{refusal_of(word, failure)};
}

}  // namespace holdfast::command
