// Completion in bash, asked the way readline asks; of zsh's only the syntax.

#include <algorithm>

#include "apps/command.h"

namespace holdfast::test {
namespace {

class Completion : public CommandTest {
 protected:
  // What bash offers at the end of the line.
  std::vector<std::string> offers(const std::string& line) {
    const std::string script =
        "source \"$1\"; COMP_LINE=$2; COMP_POINT=${#COMP_LINE}; "
        "read -ra COMP_WORDS <<<\"$COMP_LINE\"; "
        "[[ $COMP_LINE == *' ' ]] && COMP_WORDS+=(''); "
        "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=(); _holdfast; "
        "(( ${#COMPREPLY[@]} )) && printf '%s\\n' \"${COMPREPLY[@]}\"";
    Process bash = Process::start({"bash", "--norc", "-c", script, "bash", kFile, line},
                                  with_holdfast_in_path());
    bash.wait();
    EXPECT_EQ(bash.err(), "");
    std::istringstream out{bash.out()};
    std::vector<std::string> words;
    for (std::string word; std::getline(out, word);) {
      words.push_back(word);
    }
    std::sort(words.begin(), words.end());
    return words;
  }

  Process::Environment with_holdfast_in_path() const {
    auto there = environment();
    const std::string directory = std::filesystem::path{kProgram}.parent_path();
    there["PATH"] = directory + ":" + std::getenv("PATH");
    return there;
  }

  // The long options that a help text lists.
  static std::vector<std::string> options_in(const std::string& help) {
    std::vector<std::string> options;
    std::istringstream lines{help.substr(help.find("Options:"))};
    for (std::string line; std::getline(lines, line) && !line.empty();) {
      if (line.rfind("  -", 0) == 0) {
        const std::size_t start = line.find("--");
        options.push_back(line.substr(start, line.find(' ', start) - start));
      }
    }
    return options;
  }

  bool has(const std::vector<std::string>& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  }

  static constexpr const char* kFile =
      HOLDFAST_SOURCE_DIR "/apps/holdfast/completions/holdfast.bash";
};

using Offers = std::vector<std::string>;

TEST_F(Completion, OffersCommands) {
  EXPECT_EQ(offers("holdfast r"), (Offers{"release", "run"}));
  EXPECT_EQ(offers("holdfast --url memory: sh"), (Offers{"show"}));
}

TEST_F(Completion, OffersTheOptionsThatTheProgramHas) {
  for (const char* command :
       {"run", "ls", "show", "watch", "release", "task", "init", "doctor", "bench", "torture"}) {
    const auto help = call({command, "--help"}).out;
    const auto offered = offers(std::string{"holdfast "} + command + " --");
    const auto known = options_in(help);
    for (const std::string& option : offered) {
      EXPECT_TRUE(option == "--" || has(known, option)) << command << " has no " << option;
    }
    for (const std::string& option : known) {
      EXPECT_TRUE(has(offered, option)) << command << " does not offer " << option;
    }
  }
}

TEST_F(Completion, OffersValues) {
  EXPECT_EQ(offers("holdfast run x --on-lost "), (Offers{"ignore", "term"}));
  EXPECT_TRUE(has(offers("holdfast run x --wait "), "forever"));
  EXPECT_EQ(offers("holdfast task "), (Offers{"forget", "ls", "run"}));
}

TEST_F(Completion, OffersNamesOfLocksInUse) {
  Process first = start(run("seat:1", {}, "touch \"$DIR/one\"; exec sleep 60"));
  Process second = start(run("backup", {}, "touch \"$DIR/two\"; exec sleep 60"));
  ASSERT_TRUE(appears("one") && appears("two"));
  EXPECT_EQ(offers("holdfast show "), (Offers{"backup", "seat:1"}));
  EXPECT_EQ(offers("holdfast release b"), (Offers{"backup"}));
  // readline knows only the part behind the colon.
  EXPECT_EQ(offers("holdfast show seat:"), (Offers{"1"}));
  EXPECT_EQ(offers("holdfast show --url memory: b"), (Offers{}));
}

TEST_F(Completion, LeavesTheCommandToItself) {
  touch("a-file");
  EXPECT_TRUE(has(offers("holdfast run x -- bas"), "bash"));
  EXPECT_EQ(offers("holdfast run x -- cat " + file("a-f")), (Offers{file("a-file")}));
}

TEST_F(Completion, ZshReadsItsFile) {
  Process zsh =
      Process::start({"zsh", "-n", HOLDFAST_SOURCE_DIR "/apps/holdfast/completions/_holdfast"});
  EXPECT_EQ(zsh.wait(), 0) << zsh.err();
}

}  // namespace
}  // namespace holdfast::test
