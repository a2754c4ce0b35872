#include "base/text/utf8.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

constexpr char kReplacement[] = "\xef\xbf\xbd";

TEST(Utf8Test, TellsWhatIsValid) {
  for (const absl::string_view text : {"", "plain", "gr\xc3\xbc\xc3\x9f",
                                       "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
    EXPECT_TRUE(IsValidUtf8(text)) << text;
    EXPECT_EQ(ReplaceInvalidUtf8(text), text);
  }
  EXPECT_TRUE(IsValidUtf8(absl::string_view("\0", 1)));
  for (const absl::string_view text : {
           "\xff",              // never a byte of UTF-8
           "\x80",              // a continuation without a start
           "\xc3",              // cut off
           "\xc0\xaf",          // overlong '/'
           "\xe0\x80\xaf",      // overlong
           "\xed\xa0\x80",      // a surrogate
           "\xf4\x90\x80\x80",  // beyond U+10FFFF
       }) {
    EXPECT_FALSE(IsValidUtf8(text));
    EXPECT_TRUE(IsValidUtf8(ReplaceInvalidUtf8(text)));
    EXPECT_TRUE(IsValidUtf8(SanitiseText(text)));
  }
}

TEST(Utf8Test, ACharacterCutInTheMiddleIsOneReplacement) {
  EXPECT_EQ(ReplaceInvalidUtf8("a\xe2\x82"), absl::StrCat("a", kReplacement));
  EXPECT_EQ(ReplaceInvalidUtf8("\xf0\x9f\x98z"),
            absl::StrCat(kReplacement, "z"));
  EXPECT_EQ(ReplaceInvalidUtf8("\xff\xfe"),
            absl::StrCat(kReplacement, kReplacement));
}

TEST(Utf8Test, SanitisedTextKeepsLinesAndEscapesControls) {
  EXPECT_EQ(SanitiseText("one\n\ttwo"), "one\n\ttwo");
  EXPECT_EQ(SanitiseText("\x1b[31mred\x1b[0m\r\n"),
            "\\x1b[31mred\\x1b[0m\\r\n");
  EXPECT_EQ(SanitiseText(absl::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(SanitiseText("\xe2\x80\xaegnp"), "\\u202egnp");
  EXPECT_EQ(SanitiseText("\xc2\x9b"), "\\x9b");
}

TEST(Utf8Test, NeverCutsACharacter) {
  const std::string text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z";
  EXPECT_EQ(TruncateUtf8(text, 100), text);
  EXPECT_EQ(TruncateUtf8(text, 2), "a");
  EXPECT_EQ(TruncateUtf8(text, 3), "a\xc3\xa9");
  EXPECT_EQ(TruncateUtf8(text, 0), "");
  EXPECT_EQ(TailUtf8(text, 4), "z");
  EXPECT_EQ(TailUtf8(text, 5), "\xf0\x9f\x98\x80z");
  EXPECT_EQ(TailUtf8(text, 0), "");
  for (size_t bytes = 0; bytes <= text.size(); ++bytes) {
    EXPECT_TRUE(IsValidUtf8(TruncateUtf8(text, bytes))) << bytes;
    EXPECT_TRUE(IsValidUtf8(TailUtf8(text, bytes))) << bytes;
  }
}

TEST(Utf8Test, CutsBytesThatAreNoCharactersAnywhere) {
  const std::string stray(50, '\x80');
  EXPECT_EQ(TruncateUtf8(stray, 20).size(), 20);
  EXPECT_EQ(TailUtf8(stray, 20).size(), 20);
  EXPECT_EQ(TruncateUtf8(stray, 1).size(), 1);
}

TEST(Utf8Test, WhateverTheBytesAreTheResultIsValidAndStable) {
  Rng rng(20261121);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    const int size = static_cast<int>(rng.UniformInt(13));
    for (int i = 0; i < size; ++i) {
      // Mostly bytes that matter.
      static constexpr unsigned char kBytes[] = {
          'a',  '\n', 0x1b, 0x80, 0xbf, 0xc2, 0xe0, 0xa0,
          0xed, 0xf0, 0x90, 0xf4, 0x8f, 0xff, 0xc0, 0xe2};
      bytes.push_back(
          static_cast<char>(kBytes[rng.UniformInt(sizeof(kBytes))]));
    }
    const std::string sanitised = SanitiseText(bytes);
    ASSERT_TRUE(IsValidUtf8(sanitised));
    ASSERT_EQ(SanitiseText(sanitised), sanitised);
    ASSERT_TRUE(IsValidUtf8(ReplaceInvalidUtf8(bytes)));
    const size_t most = static_cast<size_t>(rng.UniformInt(13));
    for (const absl::string_view part :
         {TruncateUtf8(bytes, most), TailUtf8(bytes, most)}) {
      ASSERT_LE(part.size(), most);
    }
    ASSERT_TRUE(IsValidUtf8(TruncateUtf8(sanitised, most)));
    ASSERT_TRUE(IsValidUtf8(TailUtf8(sanitised, most)));
    ASSERT_GE(TruncateUtf8(sanitised, most).size() + 3,
              std::min(most, sanitised.size()));
  }
}

}  // namespace
}  // namespace optrail
