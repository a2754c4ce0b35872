#include "base/text/markdown.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/random.h"
#include "base/text/utf8.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

// What a renderer makes of one line of ours: the text inside of code spans, by
// CommonMark's rule (a run of backticks ends at the next one as long), and the
// text outside.
struct Rendered {
  std::string shown;    // all of it, as a reader sees it
  std::string outside;  // what a host looks for mentions and links in
  bool closed = true;   // every run of backticks has its end
};

Rendered Render(absl::string_view line) {
  Rendered rendered;
  while (!line.empty()) {
    if (line[0] != '`') {
      if (absl::StartsWith(line, "&#124;")) {
        rendered.shown += '|';
        rendered.outside += ' ';
        line.remove_prefix(6);
        continue;
      }
      rendered.shown += line[0];
      rendered.outside += line[0];
      line.remove_prefix(1);
      continue;
    }
    const size_t fence = std::min(line.find_first_not_of('`'), line.size());
    line.remove_prefix(fence);
    size_t end = 0;
    bool found = false;
    while (end < line.size() && !found) {
      if (line[end] != '`') {
        ++end;
        continue;
      }
      size_t run = 0;
      while (end + run < line.size() && line[end + run] == '`') ++run;
      if (run == fence) {
        found = true;
      } else {
        end += run;
      }
    }
    if (!found) {
      rendered.closed = false;
      return rendered;
    }
    absl::string_view code = line.substr(0, end);
    line.remove_prefix(end + fence);
    if (code.size() > 1 && code.front() == ' ' && code.back() == ' ' &&
        code.find_first_not_of(' ') != absl::string_view::npos) {
      code = code.substr(1, code.size() - 2);
    }
    absl::StrAppend(&rendered.shown, code);
    rendered.outside += "  ";
  }
  return rendered;
}

// Nothing that a renderer or a host acts on.
bool IsInert(absl::string_view outside) {
  if (outside.find_first_of("@#<>&[]!~$^\\*_|`={}") !=
      absl::string_view::npos) {
    // A ! ends a sentence, an & does not occur.
    for (size_t i = 0; i < outside.size(); ++i) {
      if (outside[i] == '!' &&
          (i + 1 == outside.size() || outside[i + 1] == ' ' ||
           absl::StrContains(".,;:!?%)\"'", outside[i + 1]))) {
        continue;
      }
      if (absl::StrContains("@#<>&[]!~$^\\*_|`={}", outside[i])) return false;
    }
  }
  if (absl::StrContains(outside, "://")) return false;
  size_t hex = 0;
  for (size_t i = 0; i < outside.size(); ++i) {
    const auto c = static_cast<unsigned char>(outside[i]);
    hex = absl::ascii_isxdigit(c) ? hex + 1 : 0;
    if (hex >= 7) return false;
    // GH-12, JIRA-12; :smile:; %12; example.com
    const auto next = i + 1 < outside.size()
                          ? static_cast<unsigned char>(outside[i + 1])
                          : ' ';
    if (c == '-' && i > 0 && absl::ascii_isalnum(outside[i - 1]) &&
        absl::ascii_isdigit(next)) {
      return false;
    }
    if ((c == ':' || c == '%') && absl::ascii_isalnum(next)) return false;
    if (c == '.' && absl::ascii_isalpha(next)) return false;
  }
  return true;
}

std::string OneSpaced(absl::string_view text) {
  return absl::StrJoin(absl::StrSplit(text, ' ', absl::SkipEmpty()), " ");
}

TEST(MarkdownTest, SentencesStayAsTheyAre) {
  for (const absl::string_view text :
       {"slower", "1 regression, 2 can't tell", "12.3 us", "+3.2%",
        "1.031..1.045", "(the merge-base of main)", "measured at 90% power?",
        "1.2 GB/s - 3",
        "Stra\xc3\x9f"
        "e",
        "12.5 \xc2\xb5s"}) {
    EXPECT_EQ(EscapeForMarkdown(text), text);
  }
}

TEST(MarkdownTest, WhatActsIsCode) {
  EXPECT_EQ(EscapeForMarkdown("slower at 1a2b3c4d: see @team"),
            "slower at `1a2b3c4d`: see `@team`");
  for (const absl::string_view text : {"@octocat",
                                       "&#64;octocat",
                                       "#12",
                                       "GH-12",
                                       "JIRA-12",
                                       "!12",
                                       "%12",
                                       "~bug",
                                       "$1",
                                       "octo/repo#12",
                                       "1a2b3c4",
                                       "deadbeef",
                                       "1234567",
                                       "https://evil.example/a?b",
                                       "www.evil.example",
                                       "mail@evil.example",
                                       "evil.example",
                                       "![x](http://evil.example/x.png)",
                                       "[x](y)",
                                       "<img src=x>",
                                       "<script>",
                                       "&lt;b&gt;",
                                       "*bold*",
                                       "_under_",
                                       "~~gone~~",
                                       "$x^2$",
                                       ":tada:",
                                       "/close",
                                       "1.",
                                       "-",
                                       "- item",
                                       "# head",
                                       "> quote",
                                       "+ item",
                                       "===",
                                       "---",
                                       "\\",
                                       "matmul/cpu/m=512"}) {
    const std::string escaped = EscapeForMarkdown(text);
    const Rendered rendered = Render(escaped);
    EXPECT_TRUE(rendered.closed) << escaped;
    EXPECT_EQ(rendered.shown, text) << escaped;
    EXPECT_TRUE(IsInert(rendered.outside)) << escaped;
    EXPECT_EQ(escaped[0], '`') << escaped;
  }
}

TEST(MarkdownTest, BackticksAndPipesAreShownAndEndNothing) {
  EXPECT_EQ(EscapeForMarkdown("a`b"), "``a`b``");
  EXPECT_EQ(EscapeForMarkdown("`"), "`` ` ``");
  EXPECT_EQ(EscapeForMarkdown("a|b"), "`a`&#124;`b`");
  EXPECT_EQ(EscapeForMarkdown("a\\|b"), "`a\\`&#124;`b`");
  EXPECT_EQ(EscapeForMarkdown("|"), "&#124;");
  EXPECT_EQ(EscapeForMarkdown("``|@x|``"),
            "``` `` ```&#124;`@x`&#124;``` `` ```");
}

TEST(MarkdownTest, ACommandIsOneSpan) {
  EXPECT_EQ(CodeForMarkdown("optrail bisect 1a 2b --filter='^a|b$' --run=..."),
            "`optrail bisect 1a 2b --filter='^a|b$' --run=...`");
  EXPECT_EQ(CodeForMarkdown("echo `date`"), "`` echo `date` ``");
  EXPECT_EQ(CodeForMarkdown(""), "");
}

TEST(MarkdownTest, ASentenceHasItsOwnSpans) {
  EXPECT_EQ(SentenceForMarkdown("next: `optrail log --limit=9`, or `@x|y`. @z"),
            "next: `optrail log --limit=9`, or `@x`&#124;`y`. `@z`");
  EXPECT_EQ(SentenceForMarkdown("a`b` and ` is no span"),
            absl::StrCat(EscapeForMarkdown("a`b` and ` is no span")));
  EXPECT_EQ(SentenceForMarkdown("`` x"), EscapeForMarkdown("`` x"));
}

TEST(MarkdownTest, LinesStayLines) {
  EXPECT_EQ(BlockForMarkdown("a @b\n  c\n"), "```\na @b\n  c\n```\n");
  EXPECT_EQ(BlockForMarkdown("```\nx"), "````\n```\nx\n````\n");
  EXPECT_EQ(BlockForMarkdown(""), "");
}

TEST(MarkdownTest, IsOneLine) {
  EXPECT_EQ(EscapeForMarkdown("a\n\n# b\x1b[0m"), "`a\\n\\n# b\\x1b[0m`");
  EXPECT_EQ(EscapeForMarkdown("  \xff  "), "`\\xff`");
  EXPECT_EQ(EscapeForMarkdown(""), "");
  EXPECT_EQ(EscapeForMarkdown("   "), "");
}

TEST(MarkdownTest, WhateverTheTextIsItIsShownAndInert) {
  static constexpr const char* kPieces[] = {
      "a",   "deadbe", "ef",       "1",    "23", "@",    "#",           "!",
      "`",   "``",     "|",        "\\",   " ",  " ",    "http",        "://",
      "www", ".",      "/",        "-",    "(",  ")",    "[",           "]",
      "<",   ">",      "&",        "#64;", "\n", "\xff", "\"",          "'",
      "~",   "$",      "*",        "_",    ":",  "%",    "+",           "=",
      "GH",  "main",   "\xc3\xa9", ",",    ";",  "?",    "\xe2\x80\xae"};
  Rng rng(9);
  for (int round = 0; round < 50000; ++round) {
    std::string text;
    for (int64_t i = rng.UniformInt(10); i >= 0; --i) {
      text += kPieces[rng.UniformInt(sizeof(kPieces) / sizeof(*kPieces))];
    }
    const std::string escaped = EscapeForMarkdown(text);
    const Rendered rendered = Render(escaped);
    ASSERT_TRUE(rendered.closed) << text << " -> " << escaped;
    ASSERT_EQ(OneSpaced(rendered.shown), OneSpaced(EscapeForTerminal(text)))
        << escaped;
    ASSERT_TRUE(IsInert(rendered.outside)) << text << " -> " << escaped;
    ASSERT_EQ(escaped.find('\n'), std::string::npos);
    ASSERT_EQ(escaped.find('|'), std::string::npos);
  }
}

}  // namespace
}  // namespace optrail
