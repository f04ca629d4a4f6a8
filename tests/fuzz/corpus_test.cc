// The kept inputs of every target, once, with whatever checks this build has.
// `./dev fuzz` looks for new ones.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

void fuzz_url(std::string_view input);
void fuzz_record(std::string_view input);
void fuzz_resp(std::string_view input);
void fuzz_rows(std::string_view input);
void fuzz_stored(std::string_view input);
#ifdef HOLDFAST_FUZZ_COMMAND
void fuzz_words(std::string_view input);
void fuzz_command_line(std::string_view input);
#endif

namespace {

struct Target {
  const char* name;
  void (*run)(std::string_view input);
};

constexpr Target kTargets[] = {
    {"url", &fuzz_url},       {"record", &fuzz_record},
    {"resp", &fuzz_resp},     {"rows", &fuzz_rows},
    {"stored", &fuzz_stored},
#ifdef HOLDFAST_FUZZ_COMMAND
    {"words", &fuzz_words},   {"command_line", &fuzz_command_line},
#endif
};

class FuzzCorpus : public testing::TestWithParam<Target> {};

TEST_P(FuzzCorpus, DoesNoHarm) {
  const std::filesystem::path folder =
      std::filesystem::path{HOLDFAST_SOURCE_DIR} / "tests/fuzz/corpus" / GetParam().name;
  int inputs = 0;
  GetParam().run("");
  for (const auto& file : std::filesystem::directory_iterator{folder}) {
    std::ostringstream text;
    text << std::ifstream{file.path(), std::ios::binary}.rdbuf();
    GetParam().run(text.str());
    ++inputs;
  }
  EXPECT_GT(inputs, 0);
}

INSTANTIATE_TEST_SUITE_P(, FuzzCorpus, testing::ValuesIn(kTargets),
                         [](const auto& which) { return std::string{which.param.name}; });

}  // namespace
