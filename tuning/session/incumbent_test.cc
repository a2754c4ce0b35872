// Fresh tunings of tasks that are tuned already: what stays, and what does not.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/numerics.h"
#include "tuning/session/proposer.h"
#include "tuning/session/session.h"
#include "tuning/space/space.h"

namespace optrail::tuning {
namespace {

constexpr char kSpace[] = R"(
knob { name: "tile"   pow2 { min: 1 max: 8 } }
knob { name: "unroll" ints: [1, 2, 3, 4] }
default {
  set { knob: "tile" int: 1 }
  set { knob: "unroll" int: 1 }
}
)";

// Times by a table, with noise that each session draws anew.
class Scripted : public OneAtATime {
 public:
  explicit Scripted(uint64_t seed) : rng_(seed) {}

  Evaluation Evaluate(const Request& request) override {
    const std::string text = CanonicalText(request.config());
    Evaluation answer;
    proto::Trial& trial = *answer.mutable_trial();
    trial.set_elapsed_ns(1'000'000);
    if (broken.count(text) > 0 && request.purpose() != Request::SEARCH) {
      trial.set_outcome(proto::CRASHED);
      return answer;
    }
    // In the rounds of a proof the two sides follow each other.
    const bool pairs = request.purpose() == Request::PROVE;
    if (!pairs) {
      defends_ = false;
    } else if (text == kDefault) {
      defends_ = true;
    }
    if (defends_ && text == broken_beside_default) {
      trial.set_outcome(proto::CRASHED);
      return answer;
    }
    const auto beside = beside_default.find(text);
    const auto cost = costs.find(text);
    const double ns =
        (defends_ && beside != beside_default.end() ? beside->second
         : cost == costs.end()                      ? 2e5
                                                    : cost->second) *
        (1 + noise * rng_.Gaussian());
    trial.set_outcome(proto::OK);
    trial.set_time_ns(ns);
    proto::Measurement& measurement = *trial.add_measurements();
    measurement.set_median_ns(ns);
    measurement.set_clean_sample_count(1);
    if (request.purpose() == Request::SEARCH && bits != nullptr) {
      AddNumerics(bits(text), trial.mutable_facts());
      AddBatchInvariance(batch_invariant.count(text) > 0,
                         trial.mutable_facts());
    }
    return answer;
  }

  std::map<std::string, double> costs;
  std::set<std::string> broken;
  // These differ in a proof against the default.
  std::string broken_beside_default;
  std::map<std::string, double> beside_default;
  double noise = .004;
  std::function<uint64_t(const std::string& config)> bits;  // nullptr: unknown
  std::set<std::string> batch_invariant;

 private:
  static constexpr char kDefault[] = "tile=1,unroll=1";
  bool defends_ = false;  // the default, in the proof that goes on
  Rng rng_;
};

class IncumbentTest : public ::testing::Test {
 protected:
  IncumbentTest()
      : space_(*Space::Parse(kSpace, "test.space.textproto")),
        bound_(*space_.Bind(*ParseShape("n=8/f32"), proto::Hardware())) {
    setup_.header.mutable_task()->set_operator_name("fake");
    setup_.header.set_strategy("random");
    setup_.header.mutable_budget()->set_trials(100);  // all 16 configs
    setup_.default_config = bound_->default_config();
    setup_.propose = [this](const proto::Session& begun, int batch) {
      ProposerOptions options;
      options.batch = batch;
      return MakeProposer(*bound_, begun, options);
    };
  }

  proto::Session Tune(Scripted& evaluator, uint64_t seed) {
    setup_.header.set_seed(seed);
    const auto session = RunSession(setup_, evaluator, clock_);
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *session : proto::Session();
  }
  void SetIncumbent(const std::string& text) {
    *setup_.header.mutable_incumbent() = *ParseConfig(text);
  }

  Space space_;
  std::unique_ptr<BoundSpace> bound_;
  SessionSetup setup_;
  FakeClock clock_;
};

// Eight tasks whose best configs are as fast as each other: in every second one
// the default is among them.
std::map<std::string, double> CostsOfTask(int task) {
  std::map<std::string, double> costs;
  if (task % 2 == 0) costs["tile=1,unroll=1"] = 1e5;
  for (int unroll = 1; unroll <= 4; ++unroll) {
    costs[absl::StrCat("tile=", 2 << task % 3, ",unroll=", unroll)] = 1e5;
  }
  return costs;
}

TEST_F(IncumbentTest, TwentyFreshTuningsOfEightTasksChangeNothing) {
  int proven_against = 0;
  for (int task = 0; task < 8; ++task) {
    setup_.header.clear_incumbent();
    std::string stored;
    for (uint64_t tuning = 0; tuning < 21; ++tuning) {
      Scripted evaluator(1000 * task + tuning);
      evaluator.costs = CostsOfTask(task);
      evaluator.noise = .01;
      const proto::Session session = Tune(evaluator, tuning + 1);
      const std::string winner = CanonicalText(session.winner());
      if (tuning > 0) {
        EXPECT_EQ(winner, stored) << task << " " << tuning;
      }
      proven_against += session.has_incumbent_proof();
      stored = winner;
      SetIncumbent(stored);
    }
  }
  // Noise put another first now and then.
  EXPECT_GT(proven_against, 0);
}

// Without a stored config, too, sessions that can tell agree.
TEST_F(IncumbentTest, EqualsAreOrderedByARule) {
  for (int task = 0; task < 8; ++task) {
    std::set<std::string> winners;
    for (uint64_t tuning = 0; tuning < 20; ++tuning) {
      Scripted evaluator(1000 * task + tuning);
      evaluator.costs = CostsOfTask(task);
      evaluator.noise = .0002;
      // All equals are finalists, whichever were lucky in the search.
      setup_.finalists = 6;
      winners.insert(CanonicalText(Tune(evaluator, tuning + 1).winner()));
    }
    EXPECT_EQ(winners.size(), 1) << task;
    // It differs from the default in one knob, or not at all.
    EXPECT_TRUE(absl::StrContains(*winners.begin(), "unroll=1")) << task;
  }
}

TEST_F(IncumbentTest, AConfigThatIsProvenBetterReplacesIt) {
  SetIncumbent("tile=2,unroll=1");
  Scripted evaluator(1);
  evaluator.costs = {{"tile=2,unroll=1", 1e5}, {"tile=4,unroll=1", .95e5}};
  const proto::Session session = Tune(evaluator, 1);
  EXPECT_EQ(CanonicalText(session.winner()), "tile=4,unroll=1");
  EXPECT_TRUE(session.incumbent_proof().claimed());
  EXPECT_NEAR(session.incumbent_proof().gain(), .05, .01);
  EXPECT_TRUE(session.proof().claimed());
  EXPECT_NEAR(session.proof().gain(), .525, .02);
}

TEST_F(IncumbentTest, ASmallerGainThanTheMarginDoesNot) {
  SetIncumbent("tile=2,unroll=1");
  Scripted evaluator(1);
  evaluator.noise = .001;
  evaluator.costs = {{"tile=2,unroll=1", 1e5}, {"tile=4,unroll=1", .992e5}};
  const proto::Session session = Tune(evaluator, 1);
  EXPECT_EQ(CanonicalText(session.winner()), "tile=2,unroll=1");
  EXPECT_FALSE(session.incumbent_proof().claimed());
  EXPECT_NEAR(session.incumbent_proof().gain(), .008, .003);
}

TEST_F(IncumbentTest, TheDefaultReplacesItOnlyIfThatIsProvenBetter) {
  SetIncumbent("tile=2,unroll=1");
  Scripted equal(1);
  equal.costs = {{"tile=1,unroll=1", 1e5}, {"tile=2,unroll=1", 1.002e5}};
  const proto::Session kept = Tune(equal, 1);
  EXPECT_EQ(CanonicalText(kept.winner()), "tile=2,unroll=1");
  EXPECT_FALSE(kept.proof().claimed());
  Scripted worse(2);
  worse.costs = {{"tile=1,unroll=1", 1e5}, {"tile=2,unroll=1", 1.05e5}};
  EXPECT_EQ(CanonicalText(Tune(worse, 2).winner()), "tile=1,unroll=1");
}

TEST_F(IncumbentTest, ADefaultThatWonDefendsItselfByTheSameMargin) {
  SetIncumbent("tile=1,unroll=1");
  Scripted evaluator(1);
  evaluator.noise = .0002;
  evaluator.costs = {{"tile=1,unroll=1", 1e5}, {"tile=2,unroll=1", .992e5}};
  EXPECT_EQ(CanonicalText(Tune(evaluator, 1).winner()), "tile=1,unroll=1");
  setup_.header.clear_incumbent();
  EXPECT_EQ(CanonicalText(Tune(evaluator, 1).winner()), "tile=2,unroll=1");
}

TEST_F(IncumbentTest, OneThatFailsDefendsNothing) {
  SetIncumbent("tile=2,unroll=1");
  Scripted evaluator(1);
  evaluator.costs = {{"tile=2,unroll=1", 1e5}, {"tile=4,unroll=1", 1.5e5}};
  evaluator.broken = {"tile=2,unroll=1"};
  EXPECT_EQ(CanonicalText(Tune(evaluator, 1).winner()), "tile=4,unroll=1");
}

// A challenger that crashes beside it makes room for the next.
TEST_F(IncumbentTest, AChallengerThatFailsDoesNotReplaceIt) {
  SetIncumbent("tile=2,unroll=1");
  Scripted evaluator(1);
  evaluator.costs = {{"tile=2,unroll=1", 1e5}, {"tile=4,unroll=1", .5e5}};
  evaluator.broken = {"tile=4,unroll=1"};
  EXPECT_EQ(CanonicalText(Tune(evaluator, 1).winner()), "tile=2,unroll=1");
}

// Sums of another unroll have other bits.
uint64_t BitsByUnroll(const std::string& config) {
  return static_cast<uint64_t>(1 + config.back() - '0') << 32;
}

TEST_F(IncumbentTest, InTheClassOfTheDefaultNoBitChanges) {
  setup_.class_of_default = true;
  std::set<std::string> tiles;
  for (int task = 0; task < 8; ++task) {
    setup_.header.clear_incumbent();
    for (uint64_t tuning = 0; tuning < 20; ++tuning) {
      Scripted evaluator(1000 * task + tuning);
      evaluator.bits = BitsByUnroll;
      evaluator.costs = CostsOfTask(task);
      // The fastest are of other classes.
      for (auto& [config, cost] : evaluator.costs) {
        if (config.back() != '1') cost /= 2;
      }
      const proto::Session session = Tune(evaluator, tuning + 1);
      const std::string winner = CanonicalText(session.winner());
      EXPECT_EQ(winner.back(), '1') << task << " " << tuning;
      EXPECT_EQ(NumericsOf(session, session.winner()),
                NumericsOf(session, setup_.default_config));
      tiles.insert(winner);
      SetIncumbent(winner);
    }
  }
  EXPECT_GT(tiles.size(), 1);
}

// Of those whose rows keep their bits, the fastest wins, whatever the default
// is like.
TEST_F(IncumbentTest, OnlyBatchInvariantConfigsWin) {
  setup_.batch_invariant = true;
  Scripted evaluator(1);
  evaluator.bits = BitsByUnroll;
  evaluator.costs = {{"tile=2,unroll=1", .5e5},
                     {"tile=4,unroll=1", .8e5},
                     {"tile=1,unroll=1", 1e5}};
  evaluator.batch_invariant = {"tile=1,unroll=1", "tile=4,unroll=1"};
  EXPECT_EQ(CanonicalText(Tune(evaluator, 1).winner()), "tile=4,unroll=1");
  evaluator.batch_invariant = {"tile=8,unroll=1"};
  EXPECT_EQ(CanonicalText(Tune(evaluator, 1).winner()), "tile=8,unroll=1");
  evaluator.batch_invariant = {};
  EXPECT_FALSE(Tune(evaluator, 1).has_winner());
}

// A short search seldom draws the stored config again.
TEST_F(IncumbentTest, AnIncumbentThatIsNotTriedStaysInTheClassOfTheDefault) {
  setup_.class_of_default = true;
  setup_.header.mutable_budget()->set_trials(5);
  SetIncumbent("tile=8,unroll=1");
  int untried = 0;
  for (uint64_t tuning = 1; tuning <= 40; ++tuning) {
    Scripted evaluator(tuning);
    evaluator.bits = BitsByUnroll;
    evaluator.costs = {{"tile=8,unroll=1", 1e5},
                       {"tile=4,unroll=1", .999e5},
                       {"tile=2,unroll=1", 1.001e5}};
    const proto::Session session = Tune(evaluator, tuning);
    EXPECT_EQ(CanonicalText(session.winner()), "tile=8,unroll=1") << tuning;
    untried += NumericsOf(session, session.incumbent()).empty();
  }
  EXPECT_GT(untried, 0);
}

// The best of the search beats the stored config and fails beside the default:
// the next one has to beat the stored config, too.
TEST_F(IncumbentTest, EachThatMayReplaceItHasToBeatIt) {
  SetIncumbent("tile=2,unroll=1");
  Scripted evaluator(1);
  evaluator.costs = {{"tile=2,unroll=1", 1e5},
                     {"tile=4,unroll=1", .9e5},
                     {"tile=8,unroll=1", .999e5}};
  evaluator.broken_beside_default = "tile=4,unroll=1";
  EXPECT_EQ(CanonicalText(Tune(evaluator, 1).winner()), "tile=2,unroll=1");
}

// Within noise of the default, the best of the search beats the stored config.
TEST_F(IncumbentTest, TheDefaultDoesNotReplaceItInSomebodyElsesName) {
  SetIncumbent("tile=2,unroll=1");
  Scripted evaluator(1);
  evaluator.noise = .001;
  evaluator.costs = {{"tile=1,unroll=1", .994e5},
                     {"tile=2,unroll=1", 1e5},
                     {"tile=4,unroll=1", .95e5}};
  // It is slower beside the default.
  evaluator.beside_default["tile=4,unroll=1"] = .995e5;
  const proto::Session session = Tune(evaluator, 1);
  EXPECT_TRUE(session.incumbent_proof().claimed());
  EXPECT_EQ(CanonicalText(session.winner()), "tile=2,unroll=1");
}

// Whatever the strategy draws: without its class nothing else could win.
TEST_F(IncumbentTest, TheDefaultIsTheFirstTrialInItsClass) {
  setup_.class_of_default = true;
  for (uint64_t tuning = 1; tuning <= 20; ++tuning) {
    Scripted evaluator(tuning);
    evaluator.bits = BitsByUnroll;
    const proto::Session session = Tune(evaluator, tuning);
    EXPECT_EQ(CanonicalText(session.trials(0).config()),
              CanonicalText(setup_.default_config));
    std::set<std::string> tried;
    for (const proto::Trial& trial : session.trials()) {
      EXPECT_TRUE(tried.insert(CanonicalText(trial.config())).second);
    }
  }
}

TEST_F(IncumbentTest, AnIncumbentOfAnotherClassDefendsNothing) {
  setup_.class_of_default = true;
  SetIncumbent("tile=2,unroll=4");
  Scripted evaluator(1);
  evaluator.bits = BitsByUnroll;
  evaluator.costs = {{"tile=2,unroll=4", .5e5}, {"tile=4,unroll=1", 1e5}};
  EXPECT_EQ(CanonicalText(Tune(evaluator, 1).winner()), "tile=4,unroll=1");
}

TEST_F(IncumbentTest, WhereNobodyKnowsTheBitsTheDefaultStays) {
  setup_.class_of_default = true;
  Scripted evaluator(1);
  evaluator.costs = {{"tile=4,unroll=1", .5e5}};
  EXPECT_EQ(CanonicalText(Tune(evaluator, 1).winner()), "tile=1,unroll=1");
}

// An interrupted session defends the config that it began with.
TEST_F(IncumbentTest, AResumedSessionKeepsItsIncumbent) {
  setup_.journal_directory = ::testing::TempDir();
  SetIncumbent("tile=2,unroll=1");
  Scripted evaluator(1);
  evaluator.costs = {{"tile=2,unroll=1", 1e5}, {"tile=4,unroll=1", .998e5}};
  {
    auto begun = Session::Open(setup_, evaluator, clock_);
    ASSERT_TRUE(begun.ok()) << begun.status();
    ASSERT_TRUE((*begun)->Advance().ok());
  }
  SetIncumbent("tile=8,unroll=4");
  const proto::Session session = Tune(evaluator, setup_.header.seed());
  EXPECT_EQ(session.sittings(), 2);
  EXPECT_EQ(CanonicalText(session.winner()), "tile=2,unroll=1");
}

}  // namespace
}  // namespace optrail::tuning
