#include "tracker/gate/policy.h"

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

int64_t Noon(int year, int month, int day) {
  return absl::ToUnixSeconds(absl::FromCivil(
      absl::CivilHour(year, month, day, 12), absl::UTCTimeZone()));
}

Policy ParseOrDie(absl::string_view text) {
  absl::StatusOr<Policy> policy = Policy::Parse(text, "gate.textproto");
  EXPECT_TRUE(policy.ok()) << policy.status();
  return *std::move(policy);
}

TEST(Policy, AnEmptyFileGatesTheTimeOfEverything) {
  const Policy policy = Policy::Default();
  const RuleView rule = policy.RuleFor("anything/at/all", "time");
  EXPECT_EQ(rule.action, proto::FAIL);
  EXPECT_EQ(rule.threshold.min_effect, .03);
  EXPECT_EQ(rule.threshold.detect_effect, .05);
  EXPECT_EQ(rule.matched,
            "the built-in rule { action: FAIL min_effect: 0.03 detect_effect: "
            "0.05 }, which a file for --policy may hold");
  EXPECT_EQ(policy.RuleFor("x", "cpu_time").action, proto::IGNORE);
  EXPECT_EQ(policy.proto().run_false_alarm_rate(), .01);
  EXPECT_EQ(policy.proto().min_baseline_runs(), 5);
  ASSERT_EQ(policy.proto().baseline_size(), 1);
  EXPECT_EQ(BaselineText(policy.proto().baseline(0)), "window:main:10");
}

TEST(Policy, OtherBackendsAreSaidAndNeverRed) {
  const Policy policy = Policy::Default();
  const std::string rest = "/m=512,n=512,k=512/f32/default/threads=1/hot";
  EXPECT_EQ(policy.RuleFor("matmul/cpu:openblas" + rest, "time").action,
            proto::WARN);
  EXPECT_EQ(policy.RuleFor("matmul/cuda:cublas_lt" + rest, "time").action,
            proto::WARN);
  EXPECT_EQ(policy.RuleFor("matmul/cpu" + rest, "time").action, proto::FAIL);
  EXPECT_EQ(policy.RuleFor("BM_a:b/8", "time").action, proto::FAIL);
}

TEST(Policy, TheFirstRuleThatMatchesTheWholeNameHolds) {
  const Policy policy = ParseOrDie(R"(
    rule { benchmark: "softmax/.*" action: IGNORE }
    rule { benchmark: ".*/hot" min_effect: 0.1 }
    rule { metric: "time|joules" action: WARN direction: HIGHER_IS_BETTER }
  )");
  EXPECT_EQ(policy.RuleFor("softmax/x/hot", "time").action, proto::IGNORE);
  const RuleView hot = policy.RuleFor("matmul/hot", "time");
  EXPECT_EQ(hot.action, proto::FAIL);
  EXPECT_EQ(hot.threshold.min_effect, .1);
  EXPECT_NEAR(hot.threshold.detect_effect, .1667, 1e-4);
  EXPECT_EQ(hot.matched, "rule 2 (line 3)");
  EXPECT_EQ(policy.RuleFor("matmul/hotter", "joules").action, proto::WARN);
  EXPECT_EQ(policy.RuleFor("matmul/hotter", "joules").threshold.direction,
            proto::HIGHER_IS_BETTER);
  EXPECT_EQ(policy.RuleFor("matmul/hot", "bytes").matched, "no rule");
}

TEST(Policy, ExemptionsExpire) {
  const Policy policy = ParseOrDie(R"(
    exemption { benchmark: "matmul/.*" until: "2026-12-31" reason: "new ABI" }
  )");
  EXPECT_NE(policy.ExemptionFor("matmul/x", "time", Noon(2026, 12, 31)),
            nullptr);
  EXPECT_EQ(policy.ExemptionFor("matmul/x", "time", Noon(2027, 1, 1)), nullptr);
  EXPECT_EQ(policy.ExemptionFor("softmax/x", "time", Noon(2026, 1, 1)),
            nullptr);
  EXPECT_TRUE(policy.ExpiredExemptions(Noon(2026, 12, 31)).empty());
  EXPECT_EQ(policy.ExpiredExemptions(Noon(2027, 1, 1)).size(), 1);
}

TEST(Policy, SaysWhereAndWhatIsWrong) {
  const struct {
    const char* text;
    const char* place;
    const char* message;
  } cases[] = {
      {"rule {\n  benchmark: \"a(\"\n}",
       "gate.textproto:2:3:", "no RE2 regular expression"},
      {"rule {\n  min_effect: -0.1\n}", "gate.textproto:2:3:",
       "min_effect is -0.1, expected a number from 0 to 10"},
      {"rule { min_effect: nan }", "gate.textproto:1:8:", "min_effect is nan"},
      {"rule { min_effect: 0.1 detect_effect: 0.05 }",
       "gate.textproto:1:24:", "more than min_effect"},
      {"\nexemption { benchmark: \"x\" until: \"2026-02-30\" reason: \"y\" }",
       "gate.textproto:2:28:", "is no date"},
      {"exemption { benchmark: \"x\" until: \"tomorrow\" reason: \"y\" }",
       "gate.textproto:1:28:", "is no date"},
      {"exemption { benchmark: \"x\" }",
       "gate.textproto:1:1:", "needs benchmark, until and reason"},
      {"run_false_alarm_rate: 2",
       "gate.textproto:1:1:", "run_false_alarm_rate is 2"},
      {"min_processes: 1", "gate.textproto:1:1:", "expected at least 2"},
      {"baseline { }", "gate.textproto:1:1:", "expected one of window"},
      {"baseline { tag: \"\" }",
       "gate.textproto:1:1:", "expected one of window"},
      {"quorum {\n  hardware { id: \"a\" }\n}",
       "gate.textproto:1:1:", "a quorum of 1 hardware, expected at least 2"},
      {"quorum {\n  hardware { id: \"a\" }\n  hardware { }\n}",
       "gate.textproto:3:3:", "hardware without an id"},
      {"quorum { hardware { id: \"a\" } hardware { id: \"a\" } }",
       "gate.textproto:1:42:", "hardware 'a' is there twice"},
      {"quorum { hardware { id: \"a\" } hardware { id: \"b\" weight: 0 } }",
       "gate.textproto:1:50:", "weight is 0, expected a number from 0.001"},
      {"quorum { hardware { id: \"a\" } hardware { id: \"b\" } slower_on: 3 }",
       "gate.textproto:1:52:",
       "slower_on is 3, expected a number from 0.001 "
       "to 2"},
      {"rul { }", "gate.textproto:1:", "rul"},
      {"on_missing: EXPLODE", "gate.textproto:1:", "EXPLODE"},
  };
  for (const auto& c : cases) {
    const auto policy = Policy::Parse(c.text, "gate.textproto");
    ASSERT_FALSE(policy.ok()) << c.text;
    const std::string message(policy.status().message());
    EXPECT_THAT(message, StartsWith(c.place)) << c.text;
    EXPECT_THAT(message, HasSubstr(c.message)) << c.text;
  }
}

TEST(Policy, ARuleThatWarnsNeverTurnsRed) {
  const Policy policy = ParseOrDie("rule { action: WARN }");
  const RuleView rule = policy.RuleFor("x", "time");
  for (const Verdict verdict :
       {Verdict::kSlower, Verdict::kMissing, Verdict::kCrashed,
        Verdict::kWrongResult, Verdict::kCannotTell}) {
    EXPECT_EQ(policy.ActionFor(verdict, rule), proto::WARN);
  }
  EXPECT_EQ(policy.ActionFor(Verdict::kFaster, rule), proto::IGNORE);
}

TEST(Policy, EveryVerdictHasADefaultAction) {
  const Policy policy = Policy::Default();
  const RuleView rule = policy.RuleFor("x", "time");
  EXPECT_EQ(policy.ActionFor(Verdict::kSlower, rule), proto::FAIL);
  EXPECT_EQ(policy.ActionFor(Verdict::kMissing, rule), proto::FAIL);
  EXPECT_EQ(policy.ActionFor(Verdict::kCrashed, rule), proto::FAIL);
  EXPECT_EQ(policy.ActionFor(Verdict::kWrongResult, rule), proto::FAIL);
  EXPECT_EQ(policy.ActionFor(Verdict::kCannotTell, rule), proto::FAIL);
  EXPECT_EQ(policy.ActionFor(Verdict::kNew, rule), proto::IGNORE);
  EXPECT_EQ(policy.ActionFor(Verdict::kRenamed, rule), proto::WARN);
  EXPECT_EQ(policy.ActionFor(Verdict::kNewVersion, rule), proto::WARN);
  EXPECT_EQ(policy.ActionFor(Verdict::kUnchanged, rule), proto::IGNORE);
  EXPECT_EQ(policy.ActionFor(Verdict::kFaster, rule), proto::IGNORE);
}

TEST(Policy, AQuorumWithoutNumbersIsOneOfAllHardwareAlike) {
  const Policy policy = ParseOrDie(
      "quorum { hardware { id: \"a\" } hardware { id: \"b\" weight: 2 } }");
  EXPECT_EQ(policy.proto().quorum().hardware(0).weight(), 1);
  EXPECT_EQ(policy.proto().quorum().slower_on(), 3);
  EXPECT_FALSE(Policy::Default().proto().has_quorum());
}

// The example shows every field that the reference lists.
TEST(Policy, TheDocumentedExampleIsOne) {
  const absl::StatusOr<std::string> page =
      ReadFile("docs/reference/policy_format.md");
  ASSERT_TRUE(page.ok()) << page.status();
  const std::string begin = "```textproto\n";
  const size_t from = page->find(begin);
  ASSERT_NE(from, std::string::npos);
  const size_t start = from + begin.size();
  const size_t end = page->find("```", start);
  const Policy policy = ParseOrDie(page->substr(start, end - start));
  EXPECT_EQ(policy.proto().baseline_size(), 2);
  EXPECT_EQ(policy.RuleFor("experimental/x", "time").action, proto::WARN);
  EXPECT_EQ(policy.RuleFor("matmul/x/hot", "time").threshold.detect_effect,
            .04);
  EXPECT_NE(policy.ExemptionFor("softmax/cpu/x", "time", Noon(2026, 12, 31)),
            nullptr);
  const auto* descriptor = proto::Policy::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    EXPECT_THAT(page->substr(start, end - start),
                HasSubstr(descriptor->field(i)->name()));
  }
}

TEST(Policy, TheOneForCiIsOne) {
  const auto policy = Policy::Load("ci/policy.textproto");
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_EQ(policy->RuleFor("softmax/x", "time").action, proto::FAIL);
}

TEST(ParseBaseline, ReadsWhatItWrites) {
  for (const char* text : {"window:main:10", "window:release/1.0:20", "run:ab",
                           "commit:d3d9933", "tag:v1.0", "merge-base:main"}) {
    const auto baseline = ParseBaseline(text);
    ASSERT_TRUE(baseline.ok()) << baseline.status();
    EXPECT_EQ(BaselineText(*baseline), text);
  }
  EXPECT_EQ(BaselineText(*ParseBaseline("window")), "window:main:10");
  EXPECT_EQ(BaselineText(*ParseBaseline("latest~1")), "run:latest~1");
  for (const char* text :
       {"", "tag:", "window:main:0", "window:main:x", "branch:main"}) {
    EXPECT_FALSE(ParseBaseline(text).ok()) << text;
  }
}

}  // namespace
}  // namespace optrail::tracker
