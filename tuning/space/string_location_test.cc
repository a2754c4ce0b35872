#include "tuning/space/string_location.h"

#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

void ExpectAt(absl::string_view text, TextLocation field, size_t offset,
              int line, int column) {
  const TextLocation at = LocateInString(text, field, offset);
  EXPECT_EQ(at.line, line) << text << " offset " << offset;
  EXPECT_EQ(at.column, column) << text << " offset " << offset;
}

TEST(StringLocationTest, CountsBytesOfTheValue) {
  ExpectAt("expr: \"abc\"", {1, 1}, 0, 1, 8);
  ExpectAt("expr: \"abc\"", {1, 1}, 2, 1, 10);
  ExpectAt("expr: \"abc\"", {1, 1}, 3, 1, 11);
  ExpectAt("x\n  expr:'abc'", {2, 3}, 1, 2, 10);
}

TEST(StringLocationTest, SeesThroughEscapes) {
  ExpectAt("e: \"\\\"\\x41\\101b\"", {1, 1}, 3, 1, 15);
}

TEST(StringLocationTest, CrossesAdjacentLiteralsAndComments) {
  ExpectAt("e: 'ab' # 'no'\n   \"cd\"", {1, 1}, 2, 2, 5);
}

TEST(StringLocationTest, CountsTabsAsTheTokenizerDoes) {
  ExpectAt("\te: 'ab'", {1, 9}, 0, 1, 13);
}

TEST(StringLocationTest, GivesTheFieldWhereThereIsNoString) {
  ExpectAt("e: 5", {1, 1}, 0, 1, 1);
}

}  // namespace
}  // namespace optrail::tuning
