#include "tracker/command/filter_values.h"

#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

TEST(FilterValuesTest, NamesWhatThereIsAndWhatIsClose) {
  RunInfo run;
  run.header.set_suite("smoke");
  run.header.mutable_hardware()->set_id("zen4");
  RunFilter filter;
  EXPECT_EQ(UnknownFilterText({run}, filter), "");
  filter.suite = "smoke";
  filter.hardware_id = "zen5";
  EXPECT_EQ(UnknownFilterText({run}, filter),
            "; --hardware=zen5: there are zen4; did you mean zen4?");
}

TEST(FilterValuesTest, ListsNoMoreThanTen) {
  std::set<std::string> many;
  for (char c = 'a'; c <= 'z'; ++c) many.insert(std::string(3, c));
  EXPECT_EQ(UnknownValueText("metric", "bbb", many), "");
  const std::string text = UnknownValueText("metric", "\x1b[31m", many);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("jjj and 16 more"), std::string::npos) << text;
  EXPECT_EQ(text.find("kkk"), std::string::npos);
}

}  // namespace
}  // namespace optrail::tracker
