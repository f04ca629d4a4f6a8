#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/eventually.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace holdfast::test {

using Words = std::vector<std::string>;

// What a finished call left.
struct Called {
  std::optional<int> status;
  std::string out;
  std::string err;
};

// The command as a user starts it, on a store of the test's own.
class CommandTest : public testing::Test {
 protected:
  std::string url() const { return "sqlite:" + (dir_ / "locks.db").string(); }
  std::string file(const std::string& name) const { return (dir_ / name).string(); }

  Process::Environment environment() const {
    return {{"HOLDFAST_URL", url()}, {"DIR", dir_.path().string()}, {"HOLDFAST", kProgram}};
  }

  Process start(Words words) const {
    words.insert(words.begin(), kProgram);
    return Process::start(words, environment());
  }

  Called call(const Words& words) const {
    Process process = start(words);
    const auto status = process.wait();
    return {status, process.out(), process.err()};
  }

  // `holdfast run NAME OPTIONS -- sh -c SCRIPT`
  static Words run(const std::string& name, const Words& options, const std::string& script) {
    Words words{"run", name};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "sh", "-c", script});
    return words;
  }

  bool exists(const std::string& name) const { return std::filesystem::exists(dir_ / name); }
  bool appears(const std::string& name) const {
    return eventually([&] { return exists(name); });
  }

  std::string contents(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream{file(name)}.rdbuf();
    return text.str();
  }

  std::vector<std::string> lines(const std::string& name) const {
    std::istringstream text{contents(name)};
    std::vector<std::string> result;
    for (std::string line; std::getline(text, line);) {
      result.push_back(line);
    }
    return result;
  }

  void touch(const std::string& name) const { std::ofstream{file(name)} << ""; }

  // Nobody holds or waits.
  bool is_idle() const { return call({"ls", "--names"}).out.empty(); }
  bool comes_to_rest() const {
    return eventually([&] { return is_idle(); });
  }
  bool is_held(const std::string& name) const {
    return call({"show", name}).out.find(name + ": held") == 0;
  }

  static constexpr const char* kProgram = HOLDFAST_COMMAND;

 private:
  TempDir dir_;
};

}  // namespace holdfast::test
