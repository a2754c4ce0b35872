#include "base/text/json.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(absl::string_view text, const JsonOptions& options = {}) {
  const auto json = ParseJson(text, "dir/x.json", options);
  EXPECT_FALSE(json.ok()) << text;
  return std::string(json.status().message());
}

TEST(ParseJson, ReadsWhatIsJson) {
  const auto json = ParseJson(R"({"a": [1, "]\"[", 2.5]})", "x");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ((*json)["a"][1], "]\"[");
}

TEST(ParseJson, NamesFileLineAndColumn) {
  EXPECT_THAT(ErrorOf("{\"a\":\n  oops}"), HasSubstr("dir/x.json:2:3: "));
  EXPECT_THAT(ErrorOf("{\"a\": [1, 2"), HasSubstr("ends early"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("ends early"));
}

TEST(ParseJson, RefusesWhatNestsTooDeep) {
  const std::string deep(1'000'000, '[');
  EXPECT_THAT(ErrorOf(deep), HasSubstr("dir/x.json:1:65: nests more than 64"));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(ErrorOf(objects), HasSubstr("nests more than 64"));
  // Brackets in a text nest nothing.
  EXPECT_TRUE(ParseJson("\"" + std::string(1000, '[') + "\"", "x").ok());
  std::string wide = "[";
  for (int i = 0; i < 1000; ++i) wide += "[],";
  EXPECT_TRUE(ParseJson(wide + "0]", "x").ok());
}

TEST(ParseJson, RefusesInvalidUtf8AndNumbersBeyondADouble) {
  EXPECT_THAT(ErrorOf("{\"a\": \"\xff\xfe\"}"), HasSubstr("dir/x.json:1:"));
  EXPECT_THAT(ErrorOf("\"\xed\xa0\x80\""), HasSubstr("UTF-8"));
  EXPECT_THAT(ErrorOf("[1e999]"), HasSubstr("1e999"));
}

TEST(ParseJson, NonFiniteNumbersAreTextsWhereThatIsAsked) {
  EXPECT_FALSE(ParseJson("[NaN]", "x").ok());
  JsonOptions options;
  options.quote_non_finite = true;
  const auto json =
      ParseJson(R"([NaN, -Infinity, "NaN\" Infinity"])", "x", options);
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ((*json)[0], "NaN");
  EXPECT_EQ((*json)[1], "-Infinity");
  EXPECT_EQ((*json)[2], "NaN\" Infinity");
}

TEST(ParseJson, RepeatedKeysAreRefusedWhereThatIsAsked) {
  JsonOptions options;
  options.unique_keys = true;
  const auto error = [&](const std::string& text) {
    return std::string(ParseJson(text, "x", options).status().message());
  };
  EXPECT_THAT(error(R"({"a": 1, "b": {"a": 2}, "a": 3})"),
              HasSubstr("x: an object has the key \"a\" twice"));
  EXPECT_THAT(error(R"([{"c": [{"d": 1, "d": 2}]}])"), HasSubstr("\"d\""));
  EXPECT_EQ(error(R"([{"a": 1}, {"a": {"a": 1}, "b": [{"a": 1}]}])"), "");
  EXPECT_TRUE(ParseJson(R"({"a": 1, "a": 2})", "x").ok());
}

TEST(ShortJson, IsOneShortLine) {
  EXPECT_EQ(ShortJson({1, "a\nb"}), R"([1,"a\nb"])");
  EXPECT_EQ(ShortJson(std::string(100, 'x'), 4), "\"xxx...");
  EXPECT_EQ(ShortJson("\xff"), "\"\\ufffd\"");
}

}  // namespace
}  // namespace optrail
