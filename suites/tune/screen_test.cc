#include "suites/tune/screen.h"

#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "suites/worker/testing/one_by_one_evaluator.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

// Times by config; what is beyond hopeless_above is CENSORED.
class Table : public OneByOneEvaluator {
 public:
  Evaluation EvaluateOne(const proto::Config& config,
                         const EvaluationOptions& options) override {
    const std::string name = tuning::CanonicalText(config);
    asked.push_back(name);
    Evaluation evaluation;
    evaluation.mutable_trial()->set_elapsed_ns(3);
    evaluation.set_unpaid_ns(2);
    evaluation.mutable_trial()->set_outcome(fails ? proto::WRONG_RESULT
                                                  : proto::OK);
    if (fails) return evaluation;
    evaluation.mutable_trial()->set_time_ns(times.at(name));
    const proto::SamplingOptions& sampling = options.sampling;
    if (sampling.has_hopeless_above_ns() &&
        evaluation.trial().time_ns() > sampling.hopeless_above_ns()) {
      evaluation.mutable_trial()->set_outcome(proto::CENSORED);
    }
    return evaluation;
  }
  Evaluator* Smaller(const proto::Config&, double fraction) override {
    asked_fraction = fraction;
    return smaller;
  }

  std::map<std::string, double> times;
  bool fails = false;
  std::vector<std::string> asked;
  Table* smaller = nullptr;
  double asked_fraction = 0;
};

class ScreenTest : public ::testing::Test {
 protected:
  ScreenTest() {
    whole_.smaller = &smaller_;
    smaller_.times = {{"x=1", 100}, {"x=2", 105}, {"x=3", 300}};
  }
  Screened Compare(const std::string& config, const std::string& best) {
    return screen_.Compare(*tuning::ParseConfig(config),
                           *tuning::ParseConfig(best), 1e8, {});
  }

  Table whole_, smaller_;
  Screen screen_{whole_};
};

TEST_F(ScreenTest, RefusesWhatIsClearlySlowerAndNothingElse) {
  EXPECT_FALSE(Compare("x=2", "x=1").hopeless);
  const Screened slow = Compare("x=3", "x=1");
  EXPECT_TRUE(slow.hopeless);
  EXPECT_EQ(slow.ratio, 3);
  EXPECT_EQ(slow.elapsed_ns, 3);
  EXPECT_EQ(slow.unpaid_ns, 2);
  EXPECT_TRUE(whole_.asked.empty());
  EXPECT_LT(whole_.asked_fraction, .1);
}

TEST_F(ScreenTest, ReadsTheBestOnceForManyAndAgainForAnother) {
  for (int i = 0; i < 5; ++i) Compare("x=3", "x=1");
  EXPECT_EQ(smaller_.asked.size(), 6);
  // Compared with x=2, x=1 is the better one.
  const Screened better = Compare("x=1", "x=2");
  EXPECT_FALSE(better.hopeless);
  EXPECT_LT(better.ratio, 1);
  EXPECT_EQ(smaller_.asked.size(), 8);
}

// A machine that slows down for good refuses nobody for that.
TEST_F(ScreenTest, FollowsAMachineThatSlowsDown) {
  Compare("x=2", "x=1");
  for (auto& [name, time] : smaller_.times) time *= 2;
  int refused = 0;
  for (int i = 0; i < 100; ++i) refused += Compare("x=2", "x=1").hopeless;
  EXPECT_LT(refused, 25);
}

TEST_F(ScreenTest, WhoFailsThereIsLookedAtOnTheWhole) {
  smaller_.fails = true;
  EXPECT_FALSE(Compare("x=3", "x=1").hopeless);
  smaller_.fails = false;
  EXPECT_TRUE(Compare("x=3", "x=1").hopeless);
  smaller_.fails = true;
  EXPECT_FALSE(Compare("x=3", "x=1").hopeless);
}

TEST_F(ScreenTest, WithoutASmallerProblemRefusesNobody) {
  whole_.smaller = nullptr;
  const Screened seen = Compare("x=3", "x=1");
  EXPECT_FALSE(seen.hopeless);
  EXPECT_EQ(seen.elapsed_ns, 0);
}

}  // namespace
}  // namespace optrail::suites
