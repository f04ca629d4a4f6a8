// The demo is the first thing that a newcomer sees; it checks its own claims.

#include "apps/command.h"

namespace holdfast::test {
namespace {

class Demo : public CommandTest {};

TEST_F(Demo, ShowsWhatItPromises) {
  Process demo =
      Process::start({HOLDFAST_SOURCE_DIR "/tools/demo.sh", kProgram}, {{"TMPDIR", file("")}});
  EXPECT_EQ(demo.wait(), 0) << demo.out() << demo.err();
  const std::string told = demo.out();
  for (const char* line :
       {"running under backup, token ", "printer: held, 4 wait", "page 4 printed with token",
        "page 5 printed with token", "All released, nothing left"}) {
    EXPECT_NE(told.find(line), std::string::npos) << line << "\n" << told;
  }
  EXPECT_TRUE(std::filesystem::is_empty(file(""))) << "it left files behind";
}

}  // namespace
}  // namespace holdfast::test
