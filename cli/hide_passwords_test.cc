#include "cli/hide_passwords.h"

#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace optrail::cli {
namespace {

TEST(HidePasswordsTest, TheProgramGetsWhatWasGivenAndNobodyElseDoes) {
  std::string program = "optrail";
  std::string flag = "--history=postgresql://me:secret@h/d?password=secret";
  std::string word = "postgresql://me:secret@h/d";
  char* argv[] = {program.data(), flag.data(), word.data(), nullptr};
  const std::string flag_before = flag, word_before = word;
  const std::vector<char*> given = HidePasswords(3, argv);
  ASSERT_EQ(given.size(), 4u);
  EXPECT_STREQ(given[0], "optrail");
  EXPECT_EQ(given[1], flag_before);
  EXPECT_EQ(given[2], word_before);
  EXPECT_EQ(given[3], nullptr);
  // All of the memory, also behind the end of the text.
  EXPECT_FALSE(absl::StrContains(flag, "secret")) << flag;
  EXPECT_FALSE(absl::StrContains(word, "secret")) << word;
  EXPECT_STREQ(argv[2], "postgresql://me@h/d");
}

TEST(HidePasswordsTest, APasswordOfOneCharacterIsHiddenToo) {
  std::string word = "postgresql://h/d?password=#";
  char* argv[] = {word.data(), nullptr};
  EXPECT_STREQ(HidePasswords(1, argv)[0], "postgresql://h/d?password=#");
  EXPECT_EQ(word, "postgresql://h/d?password=.");
}

TEST(HidePasswordsTest, OtherArgumentsStayWhereTheyAre) {
  std::string flag = "--history=postgresql://me@h/d";
  char* argv[] = {flag.data(), nullptr};
  EXPECT_EQ(HidePasswords(1, argv)[0], flag.data());
  EXPECT_EQ(flag, "--history=postgresql://me@h/d");
}

}  // namespace
}  // namespace optrail::cli
