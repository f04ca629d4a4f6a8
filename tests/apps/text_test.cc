#include "holdfast/text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast::command {
namespace {

TEST(Printable, LeavesPlainTextAlone) {
  EXPECT_EQ(printable("seat:42 / Größe 座位"), "seat:42 / Größe 座位");
}

TEST(Printable, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(printable("a\nb\tc\r"), "a\\nb\\tc\\r");
  EXPECT_EQ(printable("a\x7f"), "a\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\x9b");                 // CSI in one character
  EXPECT_EQ(printable("a\xe2\x80\xae\x62"), "a\\u{202e}b");  // writes right to left from here
}

TEST(Printable, EscapesWhatIsNoText) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc3"), "\\xc3");           // cut off
  EXPECT_EQ(printable("\xc0\x80"), "\\xc0\\x80");  // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable(std::string_view{"\0", 1}), "\\x00");
}

TEST(Printable, CannotBeMistakenForAnotherName) {
  EXPECT_NE(printable("a\nb"), printable("a\\nb"));
}

TEST(Harmless, KeepsWhatWasEscapedBefore) {
  EXPECT_EQ(harmless("no " + in_quotes("a\nb") + "\x1b"), "no 'a\\nb'\\x1b");
}

TEST(Width, CountsCharacters) {
  EXPECT_EQ(width("Größe"), 5U);
}

TEST(Nearest, FindsWhatATypingSlipMeant) {
  const std::vector<std::string> words{"run", "ls", "show", "watch", "release"};
  EXPECT_EQ(nearest("rnu", words), "run");
  EXPECT_EQ(nearest("realese", words), "release");
  EXPECT_EQ(nearest("wacth", words), "watch");
  EXPECT_EQ(nearest("kubernetes", words), "");
}

}  // namespace
}  // namespace holdfast::command
