#include "suites/evaluation/prior_judgement.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

constexpr char kSpace[] =
    "knob { name: \"u\" ints: [1, 2, 4, 8] doc: \"unrolled\" }\n"
    "default { set { knob: \"u\" int: 1 } }\n"
    "default_where { expr: \"hw.threads > 1\" why: \"one for each\" "
    "set { knob: \"u\" expr: \"hw.threads\" } }\n";

std::string WithPrior(const std::string& expr) {
  return absl::StrCat(kSpace, "prior { expr: \"", expr, "\" }\n");
}

// u=1, 2, 4 and 8 take 100, 200, 400 and 800 ns.
proto::Session Measured(int threads) {
  proto::Session session;
  session.mutable_task()->set_operator_name("add");
  session.mutable_task()->set_threads(threads);
  *session.mutable_task()->mutable_shape() = *tuning::ParseShape("n=64/f32");
  session.mutable_hardware()->set_device_kind(proto::CPU);
  session.mutable_hardware()->set_cores(8);
  for (const int u : {1, 2, 4, 8}) {
    proto::Trial& trial = *session.add_trials();
    *trial.mutable_config() = *tuning::ParseConfig(absl::StrCat("u=", u));
    trial.set_outcome(proto::OK);
    trial.set_time_ns(100 * u);
  }
  return session;
}

PriorJudgement Judge(const std::string& space, int threads = 1) {
  const auto judged = JudgePrior(Measured(threads), space, "test");
  EXPECT_TRUE(judged.ok()) << judged.status();
  return judged.ok() ? *judged : PriorJudgement();
}

TEST(JudgePriorTest, TakesTheConfigThatThePriorRanksFirst) {
  const PriorJudgement judged = Judge(WithPrior("0 - (u - 4) * (u - 4)"));
  EXPECT_TRUE(judged.has_prior);
  EXPECT_EQ(judged.picks, (std::vector<size_t>{2}));
  EXPECT_NEAR(judged.PickShare(), .25, 1e-9);
}

TEST(JudgePriorTest, WithoutAPriorThereIsNoPick) {
  const PriorJudgement judged = Judge(kSpace);
  EXPECT_FALSE(judged.has_prior);
  EXPECT_TRUE(judged.picks.empty());
  EXPECT_EQ(judged.measured.size(), 4);
}

TEST(JudgePriorTest, EqualPriorsShareThePick) {
  const PriorJudgement judged = Judge(WithPrior("min(u, 4)"));
  EXPECT_EQ(judged.picks, (std::vector<size_t>{2, 3}));
  EXPECT_TRUE(judged.IsPick(3));
  EXPECT_NEAR(judged.PickShare(), std::sqrt(.25 * .125), 1e-9);
}

TEST(JudgePriorTest, TheSpaceIsBoundForTheThreadsOfTheTask) {
  const std::string space = WithPrior("u == hw.threads ? 1 : 0");
  const PriorJudgement one = Judge(space, 1);
  EXPECT_EQ(one.picks, (std::vector<size_t>{0}));
  EXPECT_EQ(one.standard, absl::optional<size_t>(0));
  const PriorJudgement two = Judge(space, 2);
  EXPECT_EQ(two.picks, (std::vector<size_t>{1}));
  EXPECT_EQ(two.standard, absl::optional<size_t>(1));
}

}  // namespace
}  // namespace optrail::suites
