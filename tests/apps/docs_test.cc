// What docs/cli.md tells people to type works.

#include "apps/command.h"

namespace holdfast::test {
namespace {

class Docs : public CommandTest {
 protected:
  // The blocks that are marked to be run.
  static std::vector<std::string> scripts() {
    std::ifstream page{HOLDFAST_SOURCE_DIR "/docs/cli.md"};
    std::vector<std::string> found;
    bool inside = false;
    for (std::string line; std::getline(page, line);) {
      if (line == "```sh run") {
        inside = true;
        found.emplace_back();
      } else if (line == "```") {
        inside = false;
      } else if (inside) {
        found.back() += line + "\n";
      }
    }
    return found;
  }
};

TEST_F(Docs, ExamplesRun) {
  ASSERT_FALSE(scripts().empty());
  auto there = environment();
  there["PATH"] =
      std::filesystem::path{kProgram}.parent_path().string() + ":" + std::getenv("PATH");
  for (const std::string& script : scripts()) {
    Process bash = Process::start({"bash", "-euc", "cd \"$DIR\"\n" + script}, there);
    EXPECT_EQ(bash.wait(), 0) << script << bash.out() << bash.err();
  }
  EXPECT_TRUE(is_idle());
}

}  // namespace
}  // namespace holdfast::test
