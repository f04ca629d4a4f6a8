#include "support/fenced_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

namespace holdfast::test {

namespace {

constexpr std::size_t kTokenWidth = 21;  // and the end of the line

int open_file(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) throw std::system_error{errno, std::generic_category(), path};
  return file;
}

}  // namespace

bool FencedFile::write(std::uint64_t token, const std::string& text) const {
  const int file = open_file(path_);
  ::flock(file, LOCK_EX);
  // The largest token stands in front, in a field of fixed width; the log follows.
  std::string largest(kTokenWidth, '0');
  const bool first = ::pread(file, largest.data(), kTokenWidth, 0) == 0;
  const bool fresh = first || token >= std::stoull(largest);
  if (fresh) {
    std::string field = std::to_string(token);
    field.insert(0, kTokenWidth - 1 - field.size(), '0');
    const std::string line = std::to_string(token) + ' ' + text + '\n';
    if (::pwrite(file, (field + '\n').data(), kTokenWidth, 0) < 0 ||
        ::lseek(file, 0, SEEK_END) < 0 || ::write(file, line.data(), line.size()) < 0) {
      throw std::system_error{errno, std::generic_category(), path_};
    }
  }
  ::close(file);
  return fresh;
}

std::vector<FencedFile::Entry> FencedFile::entries() const {
  std::vector<Entry> found;
  std::ifstream in{path_};
  in.ignore(kTokenWidth);
  for (Entry entry; in >> entry.token >> entry.text;) found.push_back(entry);
  return found;
}

Inside::Inside(const std::filesystem::path& path)
    : file_{open_file(path)}, alone_{::flock(file_, LOCK_EX | LOCK_NB) == 0} {}

Inside::~Inside() {
  ::close(file_);
}

}  // namespace holdfast::test
