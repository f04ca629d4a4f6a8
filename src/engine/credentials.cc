#include "engine/credentials.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "base/file_descriptor.h"

namespace holdfast::engine {
namespace {

Result<std::string> read_password(const std::string& path) {
  const base::FileDescriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0) {
    return fail(ErrorCode::invalid_argument, "cannot read the password_file " + path);
  }
  if ((info.st_mode & 0077) != 0) {
    return fail(ErrorCode::invalid_argument,
                "others may read the password_file " + path + "; give it the mode 0600");
  }
  std::array<char, 4096> buffer;
  std::string text;
  for (ssize_t got = 0; (got = read(file.get(), buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > buffer.size()) {
      break;
    }
  }
  return text.substr(0, text.find_first_of("\r\n"));
}

}  // namespace

Result<std::string> password_for(const Url& url, Query& query) {
  const std::string path = query.text("password_file");
  if (!url.password.empty()) {
    return url.password;
  }
  if (!path.empty()) {
    return read_password(path);
  }
  const char* given = std::getenv("HOLDFAST_PASSWORD");
  return std::string{given == nullptr ? "" : given};
}

bool is_loopback(std::string_view host) {
  in_addr address{};
  return host == "localhost" || host == "::1" ||
         (host.starts_with("127.") && inet_pton(AF_INET, std::string{host}.c_str(), &address) == 1);
}

}  // namespace holdfast::engine
