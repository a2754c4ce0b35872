#include "suites/graph/graph_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optrail::suites {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

GraphPage Page() {
  GraphPage page;
  page.title = "tiny <model>";
  page.facts = {"end to end: 4 ms"};
  page.steps = {{"a", "linear", "m=1", 1e6}, {"<b>", "attention", "q", 3e6}};
  page.rules = {{"attention", 2, ""}, {"attention", 1, "it is <wide>"}};
  page.buffers = {{"a", 0, 1, 64, 128}, {"<i>", 1, 1, 0, 64}};
  page.arena_bytes = 192;
  return page;
}

TEST(GraphPage, ShowsStepsByTimeRulesAndTheArena) {
  const std::string text = GraphPageText(Page());
  EXPECT_THAT(text, HasSubstr("tiny &lt;model&gt;"));
  EXPECT_THAT(text, HasSubstr("not fused: it is &lt;wide&gt;"));
  EXPECT_THAT(text, HasSubstr("75.0%"));
  EXPECT_LT(text.rfind("&lt;b&gt;"), text.rfind("m=1"));
  // The buffer of 128 of 192 bytes, from 64 on and in both steps, is drawn
  // from the top.
  EXPECT_THAT(text, HasSubstr("<rect x=\"0.00\" y=\"0.00\" width=\"900.00\" "
                              "height=\"240.00\""));
  EXPECT_THAT(text, HasSubstr("&lt;i&gt;: 64 B at 0, steps 1 to 1"));
  EXPECT_THAT(text, Not(HasSubstr("<i>")));
}

TEST(GraphPage, LargeGraphsSayWhatIsLeftOut) {
  GraphPage page;
  for (int i = 0; i < 3000; ++i) {
    page.steps.push_back({"n", "generated", "add", 1.0 * i});
    page.buffers.push_back({"n", i, i, 0, 64});
  }
  page.arena_bytes = 64;
  const std::string text = GraphPageText(page);
  EXPECT_THAT(text, HasSubstr("The 1000 longest of 3000 steps"));
  EXPECT_THAT(text, HasSubstr("the 1000 largest of 3000 buffers"));
  EXPECT_LT(text.size(), 1'000'000);
}

TEST(GraphPage, AGraphWithoutStepsIsAPage) {
  EXPECT_THAT(GraphPageText({}), HasSubstr("The arena is empty."));
}

}  // namespace
}  // namespace optrail::suites
