#include "suites/tune/tune_session.h"

#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/journal.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "suites/tune/tune_journal.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tuning::CanonicalText;

constexpr char kSpace[] = R"(
knob { name: "tile"   pow2 { min: 1 max: 128 } }
knob { name: "unroll" ints: [1, 2, 3, 4, 5, 6, 7, 8] }
default {
  set { knob: "tile" int: 1 }
  set { knob: "unroll" int: 1 }
}
)";

// A task whose times are a formula and whose failures are a table. `stop_after`
// evaluations it throws, which stands for kill -9: nothing after it runs.
struct Killed {};

class FakeEvaluator : public Evaluator {
 public:
  Evaluation Evaluate(const proto::Config& config,
                      const EvaluationOptions& options) override {
    if (stop_after == 0) throw Killed();
    --stop_after;
    evaluated.push_back(CanonicalText(config));
    if (options.fresh_process) ++fresh;
    Evaluation evaluation;
    evaluation.elapsed_ns = 1'000'000;
    const auto failure = failures.find(CanonicalText(config));
    if (failure != failures.end()) {
      evaluation.outcome = failure->second;
      return evaluation;
    }
    double time_ns = TimeNs(config);
    // Readings during the search are noisy, and fixed per config, so that a
    // resumed session sees what an uninterrupted one saw.
    if (!options.fresh_process) {
      Rng rng(std::hash<std::string>()(CanonicalText(config)));
      time_ns *= 1 + search_noise * (2 * rng.UniformReal() - 1);
    }
    if (options.sampling.has_hopeless_above_ns() &&
        time_ns > options.sampling.hopeless_above_ns()) {
      evaluation.outcome = proto::CENSORED;
    } else {
      evaluation.outcome = proto::OK;
    }
    evaluation.time_ns = time_ns;
    proto::Measurement measurement;
    measurement.set_calls_per_sample(1);
    measurement.add_sample_ns(static_cast<int64_t>(time_ns));
    measurement.set_median_ns(time_ns);
    measurement.set_clean_sample_count(1);
    evaluation.measurement = measurement;
    return evaluation;
  }

  static double TimeNs(const proto::Config& config) {
    double tile = 0, unroll = 0;
    for (const proto::KnobValue& value : config.set()) {
      (value.knob() == "tile" ? tile : unroll) =
          static_cast<double>(value.int_());
    }
    // Best at tile 16, unroll 5.
    return 1e5 + 1e3 * (tile - 16) * (tile - 16) +
           2e3 * (unroll - 5) * (unroll - 5);
  }

  std::map<std::string, proto::Outcome> failures;
  double search_noise = 0;
  int stop_after = -1;
  int fresh = 0;
  std::vector<std::string> evaluated;
};

class TuneSessionTest : public ::testing::Test {
 protected:
  TuneSessionTest() {
    auto space = tuning::Space::Parse(kSpace, "test.space.textproto");
    EXPECT_TRUE(space.ok()) << space.status();
    space_ = std::make_unique<tuning::Space>(*std::move(space));
    setup_.header.set_session_id("20261120T000000Z-1");
    setup_.header.mutable_task()->set_operator_name("fake");
    setup_.header.set_space_hash(space_->hash());
    proto::Shape shape = *tuning::ParseShape("n=8/f32");
    auto bound = space_->Bind(shape, proto::Hardware());
    EXPECT_TRUE(bound.ok()) << bound.status();
    bound_ = *std::move(bound);
    setup_.space = bound_.get();
    options_.strategy = "random";
    options_.budget.set_trials(40);
    options_.journal_directory = JoinPath(
        ::testing::TempDir(),
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
  }

  absl::StatusOr<proto::Session> Run(FakeEvaluator& evaluator) {
    return RunTuneSession(setup_, options_, evaluator, clock_);
  }

  static std::vector<std::string> Tried(const proto::Session& session) {
    std::vector<std::string> configs;
    for (const proto::Trial& trial : session.trials()) {
      configs.push_back(CanonicalText(trial.config()));
    }
    return configs;
  }

  std::unique_ptr<tuning::Space> space_;
  std::unique_ptr<tuning::BoundSpace> bound_;
  TuneSetup setup_;
  TuneOptions options_;
  FakeClock clock_;
};

TEST_F(TuneSessionTest, FindsTheBestOfWhatItTriedAndVerifiesIt) {
  FakeEvaluator evaluator;
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->trials_size(), 40);
  EXPECT_EQ(session->stop_reason(), proto::TRIALS_SPENT);
  EXPECT_EQ(evaluator.fresh,
            options_.verify_processes * session->finalists_size());
  double best_ns = 1e18;
  std::string best;
  for (const std::string& config : Tried(*session)) {
    const double time_ns = FakeEvaluator::TimeNs(*tuning::ParseConfig(config));
    if (time_ns < best_ns) {
      best_ns = time_ns;
      best = config;
    }
  }
  EXPECT_EQ(CanonicalText(session->winner()), best);
}

TEST_F(TuneSessionTest, StartsWhereItsSourcesWereBestAndResumesWithThem) {
  options_.strategy = "default";
  std::vector<std::string> asked_for;
  setup_.load_sources = [&](const proto::Session& header) {
    asked_for.assign(header.source_session_ids().begin(),
                     header.source_session_ids().end());
    tuning::TransferSource source;
    for (int64_t i = 0; i < *bound_->size(); ++i) {
      const tuning::Levels levels = bound_->At(i);
      source.trials.push_back(
          {levels,
           tuning::TrialOutcome::kOk,
           {FakeEvaluator::TimeNs(bound_->ToConfig(levels))}});
    }
    return std::vector<tuning::TransferSource>{source};
  };
  setup_.header.add_source_session_ids("first");
  FakeEvaluator evaluator;
  evaluator.stop_after = 3;
  EXPECT_THROW(Run(evaluator).IgnoreError(), Killed);
  EXPECT_EQ(evaluator.evaluated[0], "tile=16,unroll=5");
  // Meanwhile another session would be nearer.
  setup_.header.set_source_session_ids(0, "newer");
  FakeEvaluator second;
  const auto session = Run(second);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_THAT(asked_for, ElementsAre("first"));
  EXPECT_THAT(session->source_session_ids(), ElementsAre("first"));
}

TEST_F(TuneSessionTest, EndsWhenTheSpaceIsExhausted) {
  options_.budget.set_trials(1000);
  FakeEvaluator evaluator;
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->stop_reason(), proto::SPACE_EXHAUSTED);
  EXPECT_EQ(session->trials_size(), 64);
  EXPECT_EQ(CanonicalText(session->winner()), "tile=16,unroll=5");
}

TEST_F(TuneSessionTest, EachOutcomeIsRecordedAndSuchAConfigNeverWins) {
  options_.budget.set_trials(1000);
  FakeEvaluator evaluator;
  // The fastest configs all fail, each in its own way.
  evaluator.failures = {{"tile=16,unroll=5", proto::CRASHED},
                        {"tile=16,unroll=4", proto::TIMED_OUT},
                        {"tile=16,unroll=6", proto::OUT_OF_MEMORY},
                        {"tile=16,unroll=3", proto::WRONG_RESULT},
                        {"tile=16,unroll=7", proto::INVALID},
                        {"tile=16,unroll=8", proto::LAUNCH_ERROR}};
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  std::map<std::string, proto::Outcome> seen;
  for (const proto::Trial& trial : session->trials()) {
    if (trial.outcome() != proto::OK && trial.outcome() != proto::CENSORED) {
      seen[CanonicalText(trial.config())] = trial.outcome();
    }
  }
  EXPECT_EQ(seen, evaluator.failures);
  EXPECT_EQ(CanonicalText(session->winner()), "tile=16,unroll=2");
}

// Right during the search and wrong in one of the fresh processes.
TEST_F(TuneSessionTest, AFinalistThatFailsVerificationDoesNotWin) {
  options_.budget.set_trials(1000);
  class Flaky : public FakeEvaluator {
   public:
    Evaluation Evaluate(const proto::Config& config,
                        const EvaluationOptions& options) override {
      Evaluation evaluation = FakeEvaluator::Evaluate(config, options);
      if (options.fresh_process &&
          CanonicalText(config) == "tile=16,unroll=5" && ++readings_ == 3) {
        evaluation.outcome = proto::WRONG_RESULT;
      }
      return evaluation;
    }
    int readings_ = 0;
  } evaluator;
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_NE(CanonicalText(session->winner()), "tile=16,unroll=5");
  EXPECT_EQ(session->finalists(1).outcome(), proto::WRONG_RESULT);
  EXPECT_FALSE(session->finalists(1).has_time_ns());
}

TEST_F(TuneSessionTest, NoWinnerWhenNothingWorks) {
  FakeEvaluator evaluator;
  for (int64_t i = 0; i < *bound_->size(); ++i) {
    evaluator.failures[CanonicalText(bound_->ToConfig(bound_->At(i)))] =
        proto::CRASHED;
  }
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_FALSE(session->has_winner());
}

TEST_F(TuneSessionTest, PrefersTheDefaultToAGainWithinNoise) {
  options_.budget.set_trials(1000);
  class Flat : public FakeEvaluator {
   public:
    Evaluation Evaluate(const proto::Config& config,
                        const EvaluationOptions& options) override {
      Evaluation evaluation = FakeEvaluator::Evaluate(config, options);
      const bool is_default = CanonicalText(config) == "tile=1,unroll=1";
      evaluation.outcome = proto::OK;
      evaluation.time_ns = is_default ? 1.001e5 : 1e5;
      evaluation.measurement->set_median_ns(*evaluation.time_ns);
      return evaluation;
    }
  } evaluator;
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(CanonicalText(session->winner()), "tile=1,unroll=1");
}

// The lucky reading of the search does not decide: the verified one does.
TEST_F(TuneSessionTest, VerificationCorrectsTheWinnersCurse) {
  options_.budget.set_trials(1000);
  options_.finalists = 8;
  FakeEvaluator evaluator;
  evaluator.search_noise = 0.03;
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(CanonicalText(session->winner()), "tile=16,unroll=5");
}

// At every point at which a session can be killed, resuming gives the session
// of an uninterrupted run and measures nothing twice.
TEST_F(TuneSessionTest, ResumesAtEveryPointWithTheSameTrials) {
  for (const char* strategy : {"random", "default"}) {
    options_.strategy = strategy;
    options_.budget.set_trials(12);
    options_.verify_processes = 2;
    const std::string directory = options_.journal_directory;

    options_.journal_directory = absl::StrCat(directory, "/", strategy);
    FakeEvaluator uninterrupted;
    uninterrupted.search_noise = 0.05;
    const auto expected = Run(uninterrupted);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const int evaluations = static_cast<int>(uninterrupted.evaluated.size());

    for (int cut = 0; cut < evaluations; ++cut) {
      options_.journal_directory =
          absl::StrCat(directory, "/", strategy, "-", cut);
      FakeEvaluator first;
      first.search_noise = 0.05;
      first.stop_after = cut;
      EXPECT_THROW((void)Run(first), Killed) << cut;
      FakeEvaluator second;
      second.search_noise = 0.05;
      const auto resumed = Run(second);
      ASSERT_TRUE(resumed.ok()) << resumed.status();
      EXPECT_EQ(Tried(*resumed), Tried(*expected)) << strategy << " " << cut;
      EXPECT_EQ(CanonicalText(resumed->winner()),
                CanonicalText(expected->winner()));
      EXPECT_EQ(resumed->sittings(), 2);
      EXPECT_EQ(first.evaluated.size() + second.evaluated.size(), evaluations)
          << "something was measured twice, cut " << cut;
    }
    options_.journal_directory = directory;
  }
}

// What a scheduler decides by (task_scheduler.h).
TEST_F(TuneSessionTest, AResumedSessionReadsTheSameAfterTheSameTrials) {
  // Each look takes a while, so that thinking does, too.
  class TickingClock : public FakeClock {
   public:
    int64_t NowNs() const override { return ticks_ += 1'000; }

   private:
    mutable int64_t ticks_ = 0;
  } clock;
  options_.strategy = "default";
  options_.budget.set_trials(16);
  using Reading = std::tuple<int64_t, int64_t, absl::optional<double>, double>;
  const auto steps = [&](FakeEvaluator& evaluator) {
    auto session = TuneSession::Open(setup_, options_, evaluator, clock);
    EXPECT_TRUE(session.ok()) << session.status();
    std::vector<Reading> readings;
    while (!(*session)->search_ended()) {
      EXPECT_TRUE((*session)->Step().ok());
      readings.emplace_back((*session)->trials(), (*session)->elapsed_ns(),
                            (*session)->expected_improvement(),
                            (*session)->best_time_ns());
    }
    return readings;
  };
  FakeEvaluator evaluator;
  const std::vector<Reading> expected = steps(evaluator);
  ASSERT_TRUE(std::get<2>(expected.back()).has_value());
  FakeEvaluator nothing_left;
  EXPECT_EQ(steps(nothing_left), expected);
  EXPECT_THAT(nothing_left.evaluated, IsEmpty());
}

TEST_F(TuneSessionTest, AChangedSpaceStartsAJournalOfItsOwn) {
  FakeEvaluator evaluator;
  ASSERT_TRUE(Run(evaluator).ok());
  const std::string before =
      TuneJournal::Path(options_.journal_directory, setup_.header);
  setup_.header.set_space_hash("other");
  EXPECT_NE(TuneJournal::Path(options_.journal_directory, setup_.header),
            before);
}

TEST_F(TuneSessionTest, KnownTrialsAreNotMeasuredAgainAndCountAsWarmStart) {
  options_.budget.set_trials(1000);
  for (int64_t i = 0; i < 60; ++i) {
    proto::Trial known;
    *known.mutable_config() = bound_->ToConfig(bound_->At(i));
    known.set_outcome(proto::OK);
    known.set_time_ns(FakeEvaluator::TimeNs(known.config()));
    setup_.known_trials.push_back(known);
  }
  FakeEvaluator evaluator;
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->warm_start_trial_count(), 60);
  EXPECT_EQ(session->trials_size(), 64);
  EXPECT_EQ(CanonicalText(session->winner()), "tile=16,unroll=5");
}

// Configs from `first` on, as an earlier session of `id` found them.
std::vector<proto::Trial> KnownOf(const tuning::BoundSpace& space,
                                  int64_t first, int count,
                                  const std::string& id) {
  std::vector<proto::Trial> trials;
  for (int64_t i = first; i < first + count; ++i) {
    proto::Trial known;
    *known.mutable_config() = space.ToConfig(space.At(i));
    known.set_outcome(proto::OK);
    known.set_time_ns(FakeEvaluator::TimeNs(known.config()));
    known.set_session_id(id);
    trials.push_back(known);
  }
  return trials;
}

TEST_F(TuneSessionTest, StartsFromTheSameTrialsWhenTheHistoryChangedMeanwhile) {
  options_.strategy = "default";
  setup_.known_trials = KnownOf(*bound_, 0, 5, "earlier");
  const std::string directory = options_.journal_directory;
  options_.journal_directory = directory + "/uninterrupted";
  FakeEvaluator whole;
  const auto expected = Run(whole);
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_EQ(expected->trials(0).session_id(), "earlier");

  options_.journal_directory = directory + "/interrupted";
  FakeEvaluator killed;
  killed.stop_after = 10;
  EXPECT_THROW((void)Run(killed), Killed);
  // Another session of the task was recorded, with the best config among its
  // trials.
  setup_.known_trials = KnownOf(*bound_, 30, 30, "meanwhile");
  FakeEvaluator resumed;
  const auto session = Run(resumed);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->sittings(), 2);
  EXPECT_EQ(session->warm_start_trial_count(), 5);
  EXPECT_EQ(session->trials(0).session_id(), "earlier");
  EXPECT_EQ(Tried(*session), Tried(*expected));
}

TEST_F(TuneSessionTest, RecordsTheSettingsOnWhichItsSittingsAgree) {
  proto::MeasurementSettings& settings = *setup_.header.mutable_settings();
  settings.set_max_samples(200);
  for (const int64_t min_sample_ns : {100, 500, 100}) {
    settings.set_min_sample_ns(min_sample_ns);
    FakeEvaluator killed;
    killed.stop_after = 5;
    EXPECT_THROW((void)Run(killed), Killed);
  }
  FakeEvaluator evaluator;
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->settings().max_samples(), 200);
  EXPECT_FALSE(session->settings().has_min_sample_ns());
}

TEST_F(TuneSessionTest, AnOlderJournalGoesOnWithWhatTheHistorySaysNow) {
  ASSERT_TRUE(CreateDirectories(options_.journal_directory).ok());
  proto::TuneJournalRecord first;
  *first.mutable_header() = setup_.header;
  first.mutable_header()->set_strategy(options_.strategy);
  first.mutable_header()->set_seed(options_.seed);
  {
    const auto journal = Journal::Open(
        TuneJournal::Path(options_.journal_directory, first.header()));
    ASSERT_TRUE(journal.ok()) << journal.status();
    ASSERT_TRUE((*journal)->AppendAndSync(first.SerializeAsString()).ok());
  }
  setup_.known_trials = KnownOf(*bound_, 0, 5, "earlier");
  FakeEvaluator evaluator;
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->sittings(), 2);
  EXPECT_EQ(session->warm_start_trial_count(), 5);
  EXPECT_EQ(session->trials_size(), 45);
}

TEST_F(TuneSessionTest, StopsByTimePatienceAndTarget) {
  options_.budget.Clear();
  options_.budget.set_time_ns(10'000'000);  // ten evaluations of 1 ms
  FakeEvaluator by_time;
  EXPECT_EQ(Run(by_time)->stop_reason(), proto::TIME_SPENT);

  options_.journal_directory += "/patience";
  options_.budget.Clear();
  options_.budget.set_patience_trials(10);
  FakeEvaluator by_patience;
  EXPECT_EQ(Run(by_patience)->stop_reason(), proto::PATIENCE_SPENT);

  options_.journal_directory += "/target";
  options_.budget.Clear();
  options_.budget.set_target_time_ns(1.2e5);
  FakeEvaluator by_target;
  EXPECT_EQ(Run(by_target)->stop_reason(), proto::TARGET_REACHED);
}

TEST_F(TuneSessionTest, AJournalThatIsNoneIsNamedInTheError) {
  ASSERT_TRUE(CreateDirectories(options_.journal_directory).ok());
  proto::Session header = setup_.header;
  header.set_strategy(options_.strategy);
  header.set_seed(options_.seed);
  const std::string path =
      TuneJournal::Path(options_.journal_directory, header);
  ASSERT_TRUE(WriteFileAtomically(path, "not a journal").ok());
  FakeEvaluator evaluator;
  const auto session = Run(evaluator);
  ASSERT_FALSE(session.ok());
  EXPECT_THAT(std::string(session.status().message()), HasSubstr(path));
}

}  // namespace
}  // namespace optrail::suites
