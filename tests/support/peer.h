#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_dir.h"

namespace holdfast::test {

// Another library's program that takes a lock, prints "held", and lets go when
// told.
class Peer {
 public:
  // The words end with the name of the file that it waits for.
  explicit Peer(std::vector<std::string> words)
      : process_{Process::start([&] {
          words.push_back(go());
          return words;
        }())} {}

  bool holds() { return process_.out().find("held") != std::string::npos; }
  bool await_hold() {
    // On a busy machine Java takes its time to start.
    eventually([&] { return holds() || !process_.is_running(); }, 3 * kPatience);
    return holds();
  }
  // It has let go, and said so by its end.
  bool let_go() {
    std::ofstream{go()} << "go";
    return process_.wait() == 0;
  }
  std::string words() { return process_.out() + process_.err(); }

 private:
  std::string go() const { return dir_ / "go"; }
  TempDir dir_;
  Process process_;
};

}  // namespace holdfast::test
