#include "support/temp_dir.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace holdfast::test {

TempDir::TempDir() {
  std::string pattern = std::filesystem::temp_directory_path() / "holdfast-test-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw std::system_error{errno, std::generic_category(), "mkdtemp " + pattern};
  }
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace holdfast::test
