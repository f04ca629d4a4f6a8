// Five machines start the same nightly job at the same time; one runs it.
//
// The lock keeps two runs from overlapping. That the job runs once a night is
// a fact about the job, so it is written down where the job's result is: a
// machine that starts late finds the lock free, and the night's work done.

#include <holdfast/holdfast.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

using namespace std::chrono_literals;

namespace {

constexpr int kMachines = 5;
const std::filesystem::path kReport = "report.txt";
const std::string kTonight = "night 1";

bool done_tonight() {
  std::ifstream report{kReport};
  for (std::string line; std::getline(report, line);) {
    if (line == kTonight) {
      return true;
    }
  }
  return false;
}

void make_report() {
  std::this_thread::sleep_for(200ms);
  std::ofstream{kReport, std::ios::app} << kTonight << '\n';
}

// What each machine runs from cron. Exit status 0 unless something is wrong.
int nightly() {
  auto client = holdfast::Client::open("sqlite:locks.db", {.label = "nightly"});
  if (!client) {
    std::cerr << client.error() << '\n';
    return 1;
  }
  auto lease = client->try_acquire("nightly-report");
  if (!lease) {
    // Busy is the normal answer for four of five machines.
    return lease.error().code == holdfast::ErrorCode::busy ? 0 : 1;
  }
  if (done_tonight()) {
    return 0;
  }
  make_report();
  // Waiting for the answer tells us whether we held the lock to the end.
  auto released = lease->release();
  if (!released) {
    std::cerr << released.error() << '\n';
    return 1;
  }
  return 0;
}

int lines_of_report() {
  std::ifstream report{kReport};
  int lines = 0;
  for (std::string line; std::getline(report, line);) {
    ++lines;
  }
  return lines;
}

}  // namespace

int main() {
  std::filesystem::remove(kReport);
  bool good = true;
  for (int machine = 0; machine < kMachines; ++machine) {
    if (fork() == 0) {  // before any Client was made
      _exit(nightly());
    }
  }
  for (int machine = 0; machine < kMachines; ++machine) {
    int status = 0;
    good = wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 && good;
  }
  good = nightly() == 0 && good;  // the one that came late
  const int runs = lines_of_report();
  std::cout << kMachines + 1 << " machines, " << runs << " run of the report\n";
  return good && runs == 1 ? 0 : 1;
}
