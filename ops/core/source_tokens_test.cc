#include "ops/core/source_tokens.h"

#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/random.h"
#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

// Tokens between '|', a line of directives with its '#'.
std::string Text(absl::string_view source) {
  std::vector<std::string> texts;
  for (const SourceLine& line : LinesOf(source)) {
    texts.push_back(absl::StrCat(line.is_directive ? "#" : "",
                                 absl::StrJoin(line.tokens, "|")));
  }
  return absl::StrJoin(texts, "\n");
}

TEST(SourceTokensTest, CommentsAndWhitespaceAreGone) {
  EXPECT_EQ(Text("int  a;// x\n\n/* y\n */ int b ;"), "int|a|;|int|b|;");
  EXPECT_EQ(Text("f( a ,\n  b )"), Text("f(a, b)"));
  EXPECT_EQ(Text("a // goes \\\n on\nb"), "a|b");
  EXPECT_EQ(Text("a /* never closed"), "a");
}

TEST(SourceTokensTest, TokensThatWhitespaceTellsApartStayApart) {
  EXPECT_NE(Text("a - -b"), Text("a--b"));
  EXPECT_NE(Text("int x"), Text("intx"));
  EXPECT_NE(Text("a & &b"), Text("a && b"));
  EXPECT_NE(Text("#define F(x) 1"), Text("#define F (x) 1"));
  EXPECT_NE(Text("#define A\nB"), Text("#define A B"));
}

TEST(SourceTokensTest, LiteralsKeepWhatLooksLikeComments) {
  EXPECT_EQ(Text(R"(s = "// no" "/* no */";)"), R"(s|=|"// no"|"/* no */"|;)");
  EXPECT_EQ(Text(R"(s = "a\"// b"; // c)"), R"(s|=|"a\"// b"|;)");
  EXPECT_EQ(Text("c = '\"'; // d"), "c|=|'\"'|;");
  EXPECT_EQ(Text("s = R\"x(// )\" stays\n)x\"; // gone"),
            "s|=|R\"x(// )\" stays\n)x\"|;");
}

TEST(SourceTokensTest, ApostrophesSeparateDigitsAndEndWithTheirLine) {
  EXPECT_EQ(Text("1'000'000 + 0x1p-3 + 1e+5f"), "1'000'000|+|0x1p-3|+|1e+5f");
  EXPECT_EQ(Text("0xe+1"), "0xe|+|1");
  EXPECT_EQ(Text("#error don't // x\nint a; // y"),
            "#error|don|'t // x\nint|a|;");
}

TEST(SourceTokensTest, DirectivesAreLinesAndMayBeContinued) {
  EXPECT_EQ(Text("  # define A \\\n  4 // four\nint x;\n#if B\n#endif"),
            "#define|A|4\nint|x|;\n#if|B\n#endif");
  EXPECT_EQ(Text("#include <a//b.h>\n"), "#include|<a//b.h>");
  EXPECT_EQ(Text("#define S(x) #x\nA ## B"), "#define|S(|x|)|#|x\nA|##|B");
}

TEST(SourceTokensTest, LinesHaveTheirNumbers) {
  const std::vector<SourceLine> lines =
      LinesOf("/*\n\n*/\n#include \"a\"\r\n\n\nx\n#b");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].number, 4);
  EXPECT_EQ(lines[1].number, 7);
  EXPECT_EQ(lines[2].number, 8);
}

// Ends, and changes nothing that is canonical already.
TEST(SourceTokensTest, AnyTextIsCut) {
  Rng random(28);
  constexpr absl::string_view kParts[] = {
      "\"", "'", "\\", "\n", "/*", "*/", "//", "R\"", "(", ")",   "#",
      "<",  ">", "a",  "1",  ".",  " ",  "\r", "e",   "+", "\xc3"};
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    const int parts = static_cast<int>(random.UniformInt(13));
    for (int i = 0; i < parts; ++i) {
      absl::StrAppend(&text, kParts[random.UniformInt(std::size(kParts))]);
    }
    for (const SourceLine& line : LinesOf(text)) {
      for (const std::string& token : line.tokens) ASSERT_FALSE(token.empty());
    }
  }
}

}  // namespace
}  // namespace optrail::ops
