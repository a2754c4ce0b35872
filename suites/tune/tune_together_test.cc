#include "suites/tune/tune_together.h"

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "gtest/gtest.h"
#include "suites/tune/tune_session.h"
#include "suites/worker/testing/one_by_one_evaluator.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

constexpr char kLargeSpace[] = R"(
knob { name: "x" pow2 { min: 1 max: 2048 } }
knob { name: "y" pow2 { min: 1 max: 2048 } }
knob { name: "z" ints: [1, 2, 3, 4, 5, 6, 7, 8] }
default {
  set { knob: "x" int: 1 } set { knob: "y" int: 1 } set { knob: "z" int: 1 }
}
)";

constexpr char kLineSpace[] = R"(
knob { name: "x" pow2 { min: 1 max: 8192 } }
default { set { knob: "x" int: 1 } }
)";

constexpr char kTinySpace[] = R"(
knob { name: "x" pow2 { min: 1 max: 16 } }
default { set { knob: "x" int: 1 } }
)";

// Stands for kill -9: nothing after it runs.
struct Killed {};

enum class Kind {
  kCorner,     // the best config is a corner of the space
  kFlat,       // nothing to find
  kImproving,  // each evaluation is 1% faster than the one before
  kBroken,     // nothing works
};

struct FakeTask {
  std::string name;
  double weight = 1;
  Kind kind = Kind::kCorner;
  const char* space = kLargeSpace;
  int64_t elapsed_ns = 1'000'000;  // of a trial
  int group = 0;
  std::vector<int> siblings = {};
  bool is_known = false;  // all of the space, before the first trial
};

class FakeEvaluator : public OneByOneEvaluator {
 public:
  // Throws Killed when `left`, which all tasks share, comes to zero.
  FakeEvaluator(const FakeTask& task, int* left) : task_(task), left_(left) {}

  Evaluation EvaluateOne(const proto::Config& config,
                         const EvaluationOptions& options) override {
    if ((*left_)-- == 0) throw Killed();
    ++evaluations;
    Evaluation evaluation;
    evaluation.mutable_trial()->set_elapsed_ns(task_.elapsed_ns);
    evaluation.mutable_trial()->set_outcome(proto::CRASHED);
    if (task_.kind == Kind::kBroken) return evaluation;
    evaluation.mutable_trial()->set_outcome(proto::OK);
    evaluation.mutable_trial()->set_time_ns(TimeNs(config));
    evaluation.mutable_trial()->add_measurements();
    evaluation.mutable_trial()->mutable_measurements(0)->set_median_ns(
        evaluation.trial().time_ns());
    return evaluation;
  }

  int evaluations = 0;

 private:
  double TimeNs(const proto::Config& config) const {
    double time_ns = 1e5;
    if (task_.kind == Kind::kFlat) return time_ns;
    if (task_.kind == Kind::kImproving) {
      return time_ns * std::pow(0.99, evaluations);
    }
    for (const proto::KnobValue& value : config.set()) {
      time_ns += 1e6 / static_cast<double>(value.int_() + 1);
    }
    return time_ns;
  }

  const FakeTask task_;
  int* const left_;
};

class TuneTogetherTest : public ::testing::Test {
 protected:
  TuneTogetherTest() {
    tune_.strategy = "default";
    tune_.finalists = 1;
    tune_.rank_rounds = 1;
    tune_.proof.max_rounds = 5;
    tune_.journal_directory = JoinPath(
        ::testing::TempDir(),
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
  }

  // The closed session of each task, by name.
  std::map<std::string, proto::Session> Run(
      const std::vector<FakeTask>& fakes) {
    struct Open {
      std::unique_ptr<tuning::Space> space;
      std::unique_ptr<tuning::BoundSpace> bound;
      std::unique_ptr<FakeEvaluator> evaluator;
      std::unique_ptr<tuning::Session> session;
    };
    std::vector<Open> open;
    std::vector<TogetherTask> tasks;
    for (const FakeTask& fake : fakes) {
      Open task;
      task.space = std::make_unique<tuning::Space>(
          *tuning::Space::Parse(fake.space, "test.space.textproto"));
      task.bound =
          *task.space->Bind(*tuning::ParseShape("n=8/f32"), proto::Hardware());
      task.evaluator =
          std::make_unique<FakeEvaluator>(fake, &evaluations_left_);
      TuneSetup setup;
      setup.header.set_session_id(absl::StrCat("20261120T000000Z-", fake.name));
      setup.header.mutable_task()->set_operator_name(fake.name);
      setup.header.set_space_hash(task.space->hash());
      setup.space = task.bound.get();
      for (int64_t x = 1; fake.is_known && x <= 8192; x *= 2) {
        setup.known_trials.push_back(KnownTrial(x));
      }
      auto session = OpenTuneSession(setup, tune_, *task.evaluator, clock_);
      EXPECT_TRUE(session.ok()) << session.status();
      task.session = *std::move(session);
      tasks.push_back({task.session.get(),
                       {fake.name, fake.weight, 0, fake.siblings},
                       fake.group});
      open.push_back(std::move(task));
    }
    const std::vector<absl::Status> searched = SearchTogether(tasks, options_);
    std::map<std::string, proto::Session> sessions;
    for (size_t i = 0; i < open.size(); ++i) {
      EXPECT_TRUE(searched[i].ok()) << searched[i];
      auto session = open[i].session->Finish();
      EXPECT_TRUE(session.ok()) << session.status();
      sessions[fakes[i].name] = *std::move(session);
      evaluations_ += open[i].evaluator->evaluations;
    }
    return sessions;
  }

  // A config of kLineSpace, where 4 is best as far as is known.
  static proto::Trial KnownTrial(int64_t x) {
    proto::Trial trial;
    proto::KnobValue& value = *trial.mutable_config()->add_set();
    value.set_knob("x");
    value.set_int_(x);
    trial.set_outcome(proto::OK);
    trial.set_time_ns(1e5 * static_cast<double>(x == 4 ? 1 : 500 + x));
    return trial;
  }

  static int Trials(const std::map<std::string, proto::Session>& sessions) {
    int trials = 0;
    for (const auto& [name, session] : sessions)
      trials += session.trials_size();
    return trials;
  }

  static std::map<std::string, std::vector<std::string>> Tried(
      const std::map<std::string, proto::Session>& sessions) {
    std::map<std::string, std::vector<std::string>> tried;
    for (const auto& [name, session] : sessions) {
      for (const proto::Trial& trial : session.trials()) {
        tried[name].push_back(tuning::CanonicalText(trial.config()));
      }
    }
    return tried;
  }

  TuneOptions tune_;
  TogetherOptions options_;
  FakeClock clock_;
  int evaluations_left_ = -1;
  int evaluations_ = 0;
};

TEST_F(TuneTogetherTest, SpendsTheTotalAndNotATrialMore) {
  for (const int total : {3, 10, 61}) {
    options_.total_trials = total;
    tune_.journal_directory += "/next";
    const auto sessions = Run({{"a"}, {"b"}, {"c"}});
    EXPECT_EQ(Trials(sessions), total);
    for (const auto& [name, session] : sessions) {
      EXPECT_GE(session.trials_size(), 1) << name << " of " << total;
      EXPECT_EQ(session.stop_reason(), proto::TRIALS_SPENT);
      EXPECT_TRUE(session.has_winner());
    }
  }
}

TEST_F(TuneTogetherTest, TheTaskThatWeighsMoreGetsMore) {
  options_.total_trials = 60;
  const auto sessions =
      Run({{"rare", 1, Kind::kImproving}, {"frequent", 100, Kind::kImproving}});
  EXPECT_GT(sessions.at("frequent").trials_size(),
            3 * sessions.at("rare").trials_size());
  EXPECT_GE(sessions.at("rare").trials_size(), 4);
}

TEST_F(TuneTogetherTest, AStalledTaskIsLeftAndSaysSo) {
  options_.total_trials = 60;
  options_.scheduler.patience_trials = 16;
  const auto sessions =
      Run({{"flat", 1e6, Kind::kFlat}, {"moving", 1, Kind::kImproving}});
  EXPECT_EQ(sessions.at("flat").stop_reason(), proto::LEFT_FOR_OTHERS);
  // The first trial is a success, 16 later ones gain nothing; turns are of 4.
  EXPECT_EQ(sessions.at("flat").trials_size(), 20);
  EXPECT_EQ(sessions.at("moving").stop_reason(), proto::TRIALS_SPENT);
  EXPECT_EQ(sessions.at("moving").trials_size(), 40);
}

TEST_F(TuneTogetherTest, WhenAllHaveStalledTheTotalIsSpentNevertheless) {
  options_.total_trials = 60;
  options_.scheduler.patience_trials = 8;
  const auto sessions = Run({{"a", 1, Kind::kFlat}, {"b", 1, Kind::kFlat}});
  EXPECT_EQ(Trials(sessions), 60);
  EXPECT_EQ(sessions.at("a").stop_reason(), proto::TRIALS_SPENT);
}

TEST_F(TuneTogetherTest, WhatAnExhaustedSpaceLeavesGoesToTheOthers) {
  options_.total_trials = 50;
  const auto sessions =
      Run({{"tiny", 100, Kind::kCorner, kTinySpace}, {"large", 1}});
  EXPECT_EQ(sessions.at("tiny").stop_reason(), proto::SPACE_EXHAUSTED);
  EXPECT_EQ(sessions.at("tiny").trials_size(), 5);
  EXPECT_EQ(sessions.at("large").trials_size(), 45);
}

TEST_F(TuneTogetherTest, EndsEarlyWhenEverySpaceIsExhausted) {
  options_.total_trials = 50;
  const auto sessions = Run({{"a", 1, Kind::kCorner, kTinySpace},
                             {"b", 1, Kind::kCorner, kTinySpace}});
  EXPECT_EQ(Trials(sessions), 10);
}

TEST_F(TuneTogetherTest, TheBudgetPerTaskIsAnUpperBound) {
  options_.total_trials = 60;
  tune_.budget.set_trials(25);
  const auto sessions = Run({{"rare", 1}, {"frequent", 1000}});
  EXPECT_EQ(sessions.at("frequent").trials_size(), 25);
  EXPECT_EQ(sessions.at("frequent").stop_reason(), proto::TRIALS_SPENT);
  EXPECT_EQ(sessions.at("rare").trials_size(), 25);
}

TEST_F(TuneTogetherTest, ATotalOfTimeIsSpentPerSecondGained) {
  options_.total_time_ns = 200'000'000;
  const auto sessions =
      Run({{"quick", 1, Kind::kImproving, kLargeSpace, 1'000'000},
           {"slow", 1, Kind::kImproving, kLargeSpace, 10'000'000}});
  int64_t elapsed_ns = 0;
  for (const auto& [name, session] : sessions) {
    for (const proto::Trial& trial : session.trials()) {
      elapsed_ns += trial.elapsed_ns();
    }
    EXPECT_EQ(session.stop_reason(), proto::TIME_SPENT);
  }
  EXPECT_GE(elapsed_ns, 200'000'000);
  EXPECT_LT(elapsed_ns, 210'000'000);  // the last trial began within it
  EXPECT_GT(sessions.at("quick").trials_size(),
            2 * sessions.at("slow").trials_size());
}

TEST_F(TuneTogetherTest, AGroupGetsItsShareAndNotATrialMoreWhileOthersWant) {
  options_.total_trials = 100;
  options_.shares = {.2, .3, .5};
  const auto sessions = Run({
      {"heavy", 1000, Kind::kImproving, kLargeSpace, 1'000'000, 0},
      {"b1", 1, Kind::kImproving, kLargeSpace, 1'000'000, 1},
      {"b2", 1, Kind::kImproving, kLargeSpace, 1'000'000, 1},
      {"c", 1, Kind::kImproving, kLargeSpace, 1'000'000, 2},
  });
  EXPECT_EQ(sessions.at("heavy").trials_size(), 20);
  EXPECT_EQ(sessions.at("b1").trials_size() + sessions.at("b2").trials_size(),
            30);
  EXPECT_EQ(sessions.at("c").trials_size(), 50);
  EXPECT_EQ(sessions.at("heavy").stop_reason(), proto::TRIALS_SPENT);
}

TEST_F(TuneTogetherTest,
       WhatAGroupLeavesOfItsShareGoesToThoseThatUsedTheirsUp) {
  options_.total_trials = 100;
  options_.shares = {.5, .5};
  options_.scheduler.patience_trials = 8;
  const auto sessions =
      Run({{"improving", 1, Kind::kImproving, kLargeSpace, 1'000'000, 0},
           {"tiny", 1, Kind::kCorner, kTinySpace, 1'000'000, 1},
           {"flat", 1, Kind::kFlat, kLargeSpace, 1'000'000, 1}});
  EXPECT_EQ(sessions.at("tiny").trials_size(), 5);
  EXPECT_EQ(sessions.at("flat").stop_reason(), proto::LEFT_FOR_OTHERS);
  EXPECT_EQ(sessions.at("improving").trials_size(),
            95 - sessions.at("flat").trials_size());
  EXPECT_GT(sessions.at("improving").trials_size(), 70);
}

TEST_F(TuneTogetherTest, SharesAreOfTheTimeWhereThatIsTheTotal) {
  options_.total_time_ns = 200'000'000;
  options_.shares = {.25, .75};
  const auto sessions =
      Run({{"quick", 1000, Kind::kImproving, kLargeSpace, 1'000'000, 0},
           {"slow", 1, Kind::kImproving, kLargeSpace, 10'000'000, 1}});
  const auto elapsed_ns = [&](const char* name) {
    int64_t sum = 0;
    for (const proto::Trial& trial : sessions.at(name).trials()) {
      sum += trial.elapsed_ns();
    }
    return sum;
  };
  // The trial that ends a share began within it.
  EXPECT_GE(elapsed_ns("quick"), 50'000'000);
  EXPECT_LT(elapsed_ns("quick"), 52'000'000);
  EXPECT_GE(elapsed_ns("slow"), 148'000'000);
}

TEST_F(TuneTogetherTest, ATaskOfWhichNothingWorksDoesNotEatTheBudget) {
  options_.total_trials = 80;
  const auto sessions = Run({{"broken", 1000, Kind::kBroken}, {"sound"}});
  EXPECT_EQ(sessions.at("broken").trials_size(), 16);
  EXPECT_FALSE(sessions.at("broken").has_winner());
  EXPECT_EQ(sessions.at("sound").trials_size(), 64);
}

// At every point at which the call can be killed, starting it again gives every
// task the trials of an uninterrupted call and measures nothing twice.
TEST_F(TuneTogetherTest, ResumesAtEveryPointWithTheSameTrialsPerTask) {
  options_.total_trials = 32;
  options_.shares = {.4, .6};
  const std::vector<FakeTask> tasks = {
      {"heavy", 50},
      {"light", 1, Kind::kCorner, kLargeSpace, 1'000'000, 1},
      {"flat", 9, Kind::kFlat, kLargeSpace, 1'000'000, 1},
      {"tiny", 5, Kind::kCorner, kTinySpace}};
  const std::string directory = tune_.journal_directory;
  tune_.journal_directory = JoinPath(directory, "uninterrupted");
  const auto expected = Run(tasks);
  const int evaluations = evaluations_;
  ASSERT_EQ(Trials(expected), 32);

  for (int cut = 0; cut < evaluations; ++cut) {
    tune_.journal_directory = absl::StrCat(directory, "/", cut);
    evaluations_left_ = cut;
    EXPECT_THROW((void)Run(tasks), Killed) << cut;
    evaluations_left_ = -1;
    evaluations_ = 0;
    const auto resumed = Run(tasks);
    EXPECT_EQ(Tried(resumed), Tried(expected)) << "cut " << cut;
    EXPECT_EQ(evaluations_, evaluations - cut) << "cut " << cut;
    for (const auto& [name, session] : resumed) {
      EXPECT_EQ(session.stop_reason(), expected.at(name).stop_reason()) << name;
      EXPECT_EQ(session.elapsed_ns(), expected.at(name).elapsed_ns()) << name;
      EXPECT_EQ(tuning::CanonicalText(session.winner()),
                tuning::CanonicalText(expected.at(name).winner()));
    }
  }
}

TEST_F(TuneTogetherTest, SiblingsTryEachOthersBest) {
  const std::string directory = tune_.journal_directory;
  // How long both take with their best configs, summed over small totals.
  const auto time_of = [&](const std::vector<FakeTask>& tasks) {
    double sum = 0;
    for (const int total : {6, 8, 10, 12}) {
      options_.total_trials = total;
      tune_.journal_directory =
          absl::StrCat(directory, "/", tasks[0].siblings.size(), "/", total);
      for (const auto& [name, session] : Run(tasks)) {
        double least = 1e18;
        for (const proto::Trial& trial : session.trials()) {
          if (trial.outcome() == proto::OK) {
            least = std::min<double>(least, trial.time_ns());
          }
        }
        sum += least;
      }
    }
    return sum;
  };
  const double alone = time_of({{"a", 1}, {"b", 1}});
  const double together =
      time_of({{"a", 1, Kind::kCorner, kLargeSpace, 1'000'000, 0, {1}},
               {"b", 1, Kind::kCorner, kLargeSpace, 1'000'000, 0, {0}}});
  EXPECT_LT(together, alone);
}

TEST_F(TuneTogetherTest, SiblingsResumeAtEveryPointWithTheSameTrials) {
  options_.total_trials = 24;
  const std::vector<FakeTask> tasks = {
      {"a", 5, Kind::kCorner, kLargeSpace, 1'000'000, 0, {1, 2}},
      {"b", 1, Kind::kCorner, kLargeSpace, 1'000'000, 0, {0}},
      {"tiny", 1, Kind::kCorner, kTinySpace, 1'000'000, 0, {0, 1}},
      {"broken", 1, Kind::kBroken, kLargeSpace, 1'000'000, 0, {0, 1}}};
  const std::string directory = tune_.journal_directory;
  tune_.journal_directory = JoinPath(directory, "uninterrupted");
  const auto expected = Run(tasks);
  const int evaluations = evaluations_;
  ASSERT_EQ(Trials(expected), 24);
  for (int cut = 0; cut < evaluations; ++cut) {
    tune_.journal_directory = absl::StrCat(directory, "/", cut);
    evaluations_left_ = cut;
    EXPECT_THROW((void)Run(tasks), Killed) << cut;
    evaluations_left_ = -1;
    EXPECT_EQ(Tried(Run(tasks)), Tried(expected)) << "cut " << cut;
  }
}

// Trials of earlier sessions are among a task's transfer sources already.
TEST_F(TuneTogetherTest, SiblingsAreNotToldWhatWasKnownBefore) {
  options_.total_trials = 9;
  const std::string directory = tune_.journal_directory;
  std::vector<std::string> alone;
  for (const bool hears : {false, true}) {
    tune_.journal_directory = absl::StrCat(directory, "/", hears);
    FakeTask known = {"known", 1, Kind::kCorner, kLineSpace};
    known.is_known = true;
    FakeTask listener = {"listener", 1, Kind::kCorner, kLineSpace};
    if (hears) listener.siblings = {0};
    const auto tried = Tried(Run({known, listener}));
    if (!hears) alone = tried.at("listener");
    EXPECT_EQ(tried.at("listener"), alone);
  }
  EXPECT_EQ(alone.size(), 9u);
}

TEST_F(TuneTogetherTest, ALargerTotalGoesOnWhereTheSmallerEnded) {
  options_.total_trials = 24;
  evaluations_left_ = 24;  // killed when the finalists are due
  EXPECT_THROW((void)Run({{"a", 3}, {"b", 1}}), Killed);
  const std::string used = tune_.journal_directory;
  evaluations_left_ = -1;
  // The search of that call is over: the finalists had been chosen.
  options_.total_trials = 40;
  EXPECT_EQ(Trials(Run({{"a", 3}, {"b", 1}})), 24);

  tune_.journal_directory = used + "/other";
  evaluations_left_ = 20;  // killed while searching
  options_.total_trials = 24;
  EXPECT_THROW((void)Run({{"a", 3}, {"b", 1}}), Killed);
  evaluations_left_ = -1;
  options_.total_trials = 40;
  EXPECT_EQ(Trials(Run({{"a", 3}, {"b", 1}})), 40);
}

}  // namespace
}  // namespace optrail::suites
