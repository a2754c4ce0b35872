#include "base/text/prose.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/random.h"
#include "base/text/table.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

TEST(WrapProseTest, BreaksAtSpacesAndIndentsWhatFollows) {
  EXPECT_EQ(WrapProse("note: one two three four\n  five six seven eight\n", 12),
            "note: one\n"
            "  two three\n"
            "  four\n"
            "  five six\n"
            "    seven\n"
            "    eight\n");
}

TEST(WrapProseTest, LeavesTextForAPipeAsItIs) {
  const std::string text(300, 'x');
  EXPECT_EQ(WrapProse(absl::StrCat("a ", text, " b\n"), 0),
            absl::StrCat("a ", text, " b\n"));
}

TEST(WrapProseTest, WrapsAtAHundredColumnsOfAWiderTerminal) {
  std::string text = "word";
  for (int i = 0; i < 60; ++i) absl::StrAppend(&text, " word");
  const std::string wrapped = WrapProse(text, 240);
  for (const absl::string_view line : absl::StrSplit(wrapped, '\n')) {
    EXPECT_LE(DisplayWidth(line), 100) << line;
    EXPECT_FALSE(line.empty());
  }
}

TEST(WrapProseTest, KeepsACommandOnOneLine) {
  EXPECT_EQ(WrapProse("it got slower; next: optrail bisect A B --filter=x", 24),
            "it got slower;\n"
            "  next: optrail bisect A B --filter=x");
  EXPECT_EQ(WrapProse("  next: optrail bisect A B --filter=x", 24),
            "  next: optrail bisect A B --filter=x");
  EXPECT_EQ(WrapProse("  optrail gate --history=a --looks=3", 24),
            "  optrail gate --history=a --looks=3");
  EXPECT_EQ(WrapProse("optrail gate --candidate='a: b' --looks=3", 24),
            "optrail gate --candidate='a: b' --looks=3");
  // An error begins with a command, and is a sentence.
  EXPECT_EQ(WrapProse("optrail log: there is no such folder", 24),
            "optrail log: there is no\n  such folder");
  EXPECT_EQ(WrapProse("  --benchmark_filter='^(one name|two)$'", 24),
            "  --benchmark_filter='^(one name|two)$'");
}

TEST(WrapProseTest, NeverBreaksAWord) {
  EXPECT_EQ(WrapProse("of matmul/cpu/m=512,n=512,k=512/f32 it is", 20),
            "of\n"
            "  matmul/cpu/m=512,n=512,k=512/f32\n"
            "  it is");
}

TEST(WrapProseTest, BreaksALongConfigAfterCommas) {
  EXPECT_EQ(WrapProse("winner tile=32,unroll=4,threads=8: proven", 20),
            "winner tile=32,\n"
            "  unroll=4,\n"
            "  threads=8: proven");
}

TEST(FillParagraphTest, StartsALineAtTheFirstIndent) {
  EXPECT_EQ(FillParagraph("one two\nthree", 12, 4, 2), "    one two\n  three");
}

TEST(WrapProseTest, CountsColumnsNotBytes) {
  EXPECT_EQ(WrapProse("µµµµ µµµµ µµµµ", 9), "µµµµ µµµµ\n  µµµµ");
}

// Whatever the text and the width: the words stay, and only a long word makes
// a line longer than the width.
TEST(WrapProseTest, KeepsEveryWordAndTheWidth) {
  Rng rng(20261127);
  for (int round = 0; round < 2000; ++round) {
    std::string text(static_cast<size_t>(rng.UniformInt(8)), ' ');
    for (int64_t words = rng.UniformInt(20); words > 0; --words) {
      absl::StrAppend(
          &text, std::string(static_cast<size_t>(1 + rng.UniformInt(15)), 'x'),
          " ");
    }
    const int width = static_cast<int>(12 + rng.UniformInt(60));
    const std::string wrapped = WrapProse(text, width);
    const auto words = [](absl::string_view of) {
      return std::vector<std::string>(
          absl::StrSplit(of, absl::ByAnyChar(" \n"), absl::SkipEmpty()));
    };
    ASSERT_EQ(words(text), words(wrapped)) << text;
    for (const absl::string_view line : absl::StrSplit(wrapped, '\n')) {
      if (words(line).size() < 2) continue;
      ASSERT_LE(DisplayWidth(line), width) << line;
    }
  }
}

TEST(JoinFirst, StopsAfterSoMany) {
  EXPECT_EQ(JoinFirst({}, 3), "");
  EXPECT_EQ(JoinFirst({"a", "b", "c"}, 3), "a, b, c");
  EXPECT_EQ(JoinFirst({"a", "b", "c", "d", "e"}, 3), "a, b, c and 2 more");
  EXPECT_EQ(JoinFirst({"a, b", "c", "d"}, 2, "; "), "a, b; c; and 1 more");
  EXPECT_EQ(JoinFirst({"a, b", "c"}, 2, "; "), "a, b; c");
}

}  // namespace
}  // namespace optrail
