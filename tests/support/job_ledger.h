#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <vector>

struct sqlite3;

namespace holdfast::test {

// A table of jobs that many processes work on, and the fence of each: the
// largest token that has begun it. The ledger itself keeps nobody out.
class JobLedger {
 public:
  explicit JobLedger(const std::filesystem::path& path);
  ~JobLedger();
  JobLedger(const JobLedger&) = delete;
  JobLedger& operator=(const JobLedger&) = delete;

  void add(int jobs) const;  // numbered from 0

  // False: the job is done, or a larger token has begun it.
  bool begin(int job, std::uint64_t token) const;
  // Accepted only from whoever began it last; counts every acceptance.
  bool complete(int job, std::uint64_t token) const;

  std::set<int> open_jobs() const;
  // How often the completion of each was accepted.
  std::vector<int> acceptances() const;

 private:
  int change(const char* statement, int job, std::uint64_t token) const;
  std::vector<int> numbers(const char* query) const;

  sqlite3* handle_ = nullptr;
};

}  // namespace holdfast::test
