#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::test {

// The protected resource of the textbooks: takes a write only if no larger
// token was seen before. A file, so that several processes can write to it.
class FencedFile {
 public:
  explicit FencedFile(std::filesystem::path path) : path_{std::move(path)} {}

  // False: refused, the token is stale.
  bool write(std::uint64_t token, const std::string& text) const;

  struct Entry {
    std::uint64_t token = 0;
    std::string text;
  };
  std::vector<Entry> entries() const;

 private:
  std::filesystem::path path_;
};

// An exclusive flock(2), which ends with its process: two at a time at one
// place mean that two holders were inside at once.
class Inside {
 public:
  explicit Inside(const std::filesystem::path& path);
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  bool alone() const noexcept { return alone_; }

 private:
  int file_ = -1;
  bool alone_ = false;
};

}  // namespace holdfast::test
