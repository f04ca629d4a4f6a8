#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_dir.h"

namespace holdfast::test {

// `holdfast torture` beside a test that breaks the store.
class TortureRun {
 public:
  // Options as a user writes them.
  TortureRun(const std::string& url, const std::vector<std::string>& more);

  bool is_running() { return process_.is_running(); }

  // Waits for its end: the properties that it found violated.
  std::set<std::string> violated();

  std::int64_t granted() const noexcept { return granted_; }  // locks, in all
  // What it said, for a test that fails.
  const std::string& text() const noexcept { return text_; }

 private:
  TempDir dir_;
  Process process_;
  std::string text_;
  std::int64_t granted_ = 0;
};

}  // namespace holdfast::test
