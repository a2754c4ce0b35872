#include "base/text/quote.h"

#include "gtest/gtest.h"

namespace optrail {
namespace {

TEST(QuoteForShell, LeavesHarmlessWordsAsTheyAre) {
  EXPECT_EQ(QuoteForShell("--batch=8"), "'--batch=8'");
  EXPECT_EQ(QuoteForShell("a_b.c-d+e/f:g,h@i%j"), "a_b.c-d+e/f:g,h@i%j");
  EXPECT_EQ(QuoteForShell(""), "''");
}

TEST(QuoteForShell, QuotesTheRest) {
  EXPECT_EQ(QuoteForShell("$(rm -r x)"), "'$(rm -r x)'");
  EXPECT_EQ(QuoteForShell("it's"), "'it'\\''s'");
  EXPECT_EQ(QuoteForShell("a\nb"), "'a\nb'");
}

TEST(QuoteForCsv, QuotesCommasQuotesAndLineBreaks) {
  EXPECT_EQ(QuoteForCsv("plain text"), "plain text");
  EXPECT_EQ(QuoteForCsv(""), "");
  EXPECT_EQ(QuoteForCsv("a,b"), "\"a,b\"");
  EXPECT_EQ(QuoteForCsv("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(QuoteForCsv("a\rb"), "\"a\rb\"");
}

}  // namespace
}  // namespace optrail
