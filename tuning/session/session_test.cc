#include "tuning/session/session.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/file/journal.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/metering.h"
#include "tuning/session/objective.h"
#include "tuning/session/session_journal.h"

namespace optrail::tuning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kSpace[] = R"(
knob { name: "tile"   pow2 { min: 1 max: 128 } }
knob { name: "unroll" ints: [1, 2, 3, 4, 5, 6, 7, 8] }
default {
  set { knob: "tile" int: 1 }
  set { knob: "unroll" int: 1 }
}
)";

// Stands for kill -9: nothing after it runs.
struct Killed {};

// A task whose times are a formula and whose failures are a table.
// `stop_after` evaluations it throws.
class FakeEvaluator : public OneAtATime {
 public:
  Evaluation Evaluate(const Request& request) override {
    if (stop_after == 0) throw Killed();
    --stop_after;
    const std::string text = CanonicalText(request.config());
    evaluated.push_back(text);
    const bool again = request.purpose() != Request::SEARCH;
    if (again) ++fresh;
    Evaluation answer;
    proto::Trial& trial = *answer.mutable_trial();
    trial.set_elapsed_ns(1'000'000);
    trial.mutable_effort()->set_open_ns(open_ns);
    const auto failure = failures.find(text);
    if (failure != failures.end()) {
      trial.set_outcome(failure->second);
      return answer;
    }
    // Noise is fixed per config (and round), so that a resumed session sees
    // what an uninterrupted one saw.
    const double noise = again ? again_noise : search_noise;
    Rng rng(std::hash<std::string>()(absl::StrCat(
        text,
        again ? absl::StrCat("@", request.purpose() - 1, "/", request.round())
              : "")));
    const double time_ns =
        TimeNs(request.config()) * (1 + noise * (2 * rng.UniformReal() - 1));
    trial.set_outcome(request.has_hopeless_above() &&
                              time_ns > request.hopeless_above()
                          ? proto::CENSORED
                          : proto::OK);
    SetTime(time_ns, trial);
    return answer;
  }

  static void SetTime(double time_ns, proto::Trial& trial) {
    trial.set_time_ns(time_ns);
    trial.clear_measurements();
    proto::Measurement& measurement = *trial.add_measurements();
    measurement.set_calls_per_sample(1);
    measurement.add_sample_ns(static_cast<int64_t>(time_ns));
    measurement.set_median_ns(time_ns);
    measurement.set_clean_sample_count(1);
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
  double search_noise = 0, again_noise = 0;
  int stop_after = -1;
  int fresh = 0;
  int64_t open_ns = 0;
  std::vector<std::string> evaluated;
};

class SessionTest : public ::testing::Test {
 protected:
  SessionTest() {
    auto space = Space::Parse(kSpace, "test.space.textproto");
    EXPECT_TRUE(space.ok()) << space.status();
    space_ = std::make_unique<Space>(*std::move(space));
    setup_.header.set_session_id("20261120T000000Z-1");
    setup_.header.mutable_task()->set_operator_name("fake");
    setup_.header.set_space_hash(space_->hash());
    proto::Shape shape = *ParseShape("n=8/f32");
    auto bound = space_->Bind(shape, proto::Hardware());
    EXPECT_TRUE(bound.ok()) << bound.status();
    bound_ = *std::move(bound);
    setup_.default_config = bound_->default_config();
    setup_.header.set_strategy("random");
    setup_.header.set_seed(1);
    setup_.header.mutable_budget()->set_trials(40);
    setup_.propose = [this](const proto::Session& begun, int batch) {
      ProposerOptions options;
      options.batch = batch;
      if (load_sources) options.sources = load_sources(begun);
      return MakeProposer(*bound_, begun, options);
    };
    setup_.journal_directory = JoinPath(
        ::testing::TempDir(),
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
  }

  absl::StatusOr<proto::Session> Run(FakeEvaluator& evaluator) {
    return RunSession(setup_, evaluator, clock_);
  }

  static std::vector<std::string> Tried(const proto::Session& session) {
    std::vector<std::string> configs;
    for (const proto::Trial& trial : session.trials()) {
      configs.push_back(CanonicalText(trial.config()));
    }
    return configs;
  }

  std::unique_ptr<Space> space_;
  std::unique_ptr<BoundSpace> bound_;
  SessionSetup setup_;
  std::function<std::vector<TransferSource>(const proto::Session&)>
      load_sources;
  FakeClock clock_;
};

TEST_F(SessionTest, FindsTheBestOfWhatItTriedAndVerifiesIt) {
  FakeEvaluator evaluator;
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->trials_size(), 40);
  EXPECT_EQ(session->stop_reason(), proto::TRIALS_SPENT);
  double best_ns = 1e18;
  std::string best;
  for (const std::string& config : Tried(*session)) {
    const double time_ns = FakeEvaluator::TimeNs(*ParseConfig(config));
    if (time_ns < best_ns) {
      best_ns = time_ns;
      best = config;
    }
  }
  EXPECT_EQ(CanonicalText(session->winner()), best);
}

TEST_F(SessionTest, StartsWhereItsSourcesWereBestAndResumesWithThem) {
  setup_.header.set_strategy("default");
  std::vector<std::string> asked_for;
  load_sources = [&](const proto::Session& header) {
    asked_for.assign(header.source_session_ids().begin(),
                     header.source_session_ids().end());
    TransferSource source;
    for (int64_t i = 0; i < *bound_->size(); ++i) {
      const Levels levels = bound_->At(i);
      source.trials.push_back(
          {levels,
           proto::OK,
           {FakeEvaluator::TimeNs(bound_->ToConfig(levels))}});
    }
    return std::vector<TransferSource>{source};
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

TEST_F(SessionTest, EndsWhenTheSpaceIsExhausted) {
  setup_.header.mutable_budget()->set_trials(1000);
  FakeEvaluator evaluator;
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->stop_reason(), proto::SPACE_EXHAUSTED);
  EXPECT_EQ(session->trials_size(), 64);
  EXPECT_EQ(CanonicalText(session->winner()), "tile=16,unroll=5");
}

TEST_F(SessionTest, EachOutcomeIsRecordedAndSuchAConfigNeverWins) {
  setup_.header.mutable_budget()->set_trials(1000);
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
TEST_F(SessionTest, AFinalistThatFailsWhenReadAgainDoesNotWin) {
  setup_.header.mutable_budget()->set_trials(1000);
  for (const Purpose purpose : {Request::RANK, Request::PROVE}) {
    class Flaky : public FakeEvaluator {
     public:
      explicit Flaky(Purpose purpose) : purpose_(purpose) {}
      Evaluation Evaluate(const Request& request) override {
        Evaluation answer = FakeEvaluator::Evaluate(request);
        if (request.purpose() == purpose_ &&
            CanonicalText(request.config()) == "tile=16,unroll=5" &&
            ++readings_ == 2) {
          answer.mutable_trial()->set_outcome(proto::WRONG_RESULT);
        }
        return answer;
      }

     private:
      const Purpose purpose_;
      int readings_ = 0;
    } evaluator(purpose);
    setup_.journal_directory += "x";
    const auto session = Run(evaluator);
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_NE(CanonicalText(session->winner()), "tile=16,unroll=5");
    EXPECT_EQ(session->finalists(1).outcome(), proto::WRONG_RESULT);
    // The next best is proven instead.
    EXPECT_EQ(session->proof().candidate().SerializeAsString(),
              session->winner().SerializeAsString());
    EXPECT_TRUE(session->proof().claimed());
  }
}

TEST_F(SessionTest, WithoutADefaultThatWorksTheBestWinsUnproven) {
  setup_.header.mutable_budget()->set_trials(1000);
  FakeEvaluator evaluator;
  evaluator.failures = {{"tile=1,unroll=1", proto::CRASHED}};
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(CanonicalText(session->winner()), "tile=16,unroll=5");
  EXPECT_FALSE(session->has_proof());
  EXPECT_GE(session->finalists(1).measurements_size(), setup_.rank_rounds);
}

TEST_F(SessionTest, WhereNothingElseWorksTheDefaultIsReadUntilItIsKnownToWork) {
  FakeEvaluator evaluator;
  for (int64_t i = 0; i < *bound_->size(); ++i) {
    const std::string text = CanonicalText(bound_->ToConfig(bound_->At(i)));
    if (text != "tile=1,unroll=1") evaluator.failures[text] = proto::CRASHED;
  }
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(CanonicalText(session->winner()), "tile=1,unroll=1");
  EXPECT_EQ(session->finalists(0).measurements_size(), setup_.rank_rounds);
  EXPECT_TRUE(session->finalists(0).has_time_ns());
}

TEST_F(SessionTest, NoWinnerWhenNothingWorks) {
  FakeEvaluator evaluator;
  for (int64_t i = 0; i < *bound_->size(); ++i) {
    evaluator.failures[CanonicalText(bound_->ToConfig(bound_->At(i)))] =
        proto::CRASHED;
  }
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_FALSE(session->has_winner());
}

TEST_F(SessionTest, PrefersTheDefaultToAGainTooSmallToMatter) {
  setup_.header.mutable_budget()->set_trials(1000);
  class Flat : public FakeEvaluator {
   public:
    Evaluation Evaluate(const Request& request) override {
      Evaluation answer = FakeEvaluator::Evaluate(request);
      const bool is_default =
          CanonicalText(request.config()) == "tile=1,unroll=1";
      answer.mutable_trial()->set_outcome(proto::OK);
      SetTime(is_default ? 1.001e5 : 1e5, *answer.mutable_trial());
      return answer;
    }
  } evaluator;
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(CanonicalText(session->winner()), "tile=1,unroll=1");
  // What was found is on record all the same.
  EXPECT_FALSE(session->proof().claimed());
  EXPECT_NEAR(session->proof().gain(), .001, .0005);
}

TEST_F(SessionTest, AProofEndsWithTheTimeThatItWasGiven) {
  // Ratios of rounds vary by a fifth: nothing is known within 1% soon.
  class Noisy : public FakeEvaluator {
   public:
    Evaluation Evaluate(const Request& request) override {
      Evaluation answer = FakeEvaluator::Evaluate(request);
      if (request.purpose() == Request::PROVE) {
        SetTime(answer.trial().time_ns() * (1 + .2 * (++readings_ % 3)),
                *answer.mutable_trial());
      }
      return answer;
    }

   private:
    int readings_ = 0;
  };
  std::vector<int> rounds;
  for (const absl::Duration time : {absl::Nanoseconds(1), absl::Seconds(1)}) {
    Noisy evaluator;
    setup_.proof.max_time = time;
    setup_.journal_directory += "x";
    const auto session = Run(evaluator);
    ASSERT_TRUE(session.ok()) << session.status();
    if (rounds.empty()) {
      EXPECT_EQ(session->proof().end(), proto::PROOF_TIME_SPENT);
    }
    rounds.push_back(session->proof().rounds());
  }
  EXPECT_EQ(rounds[0], setup_.proof.min_rounds);
  EXPECT_GT(rounds[1], rounds[0]);
}

// A reading takes 1 ms, a round of the ranking 4, a round of the proof 2.
TEST_F(SessionTest, RankingAndProofEndWithTheTimeOfTheSession) {
  FakeEvaluator evaluator;
  evaluator.again_noise = .3;
  setup_.rank_rounds = 50;
  setup_.proof.max_time = absl::Milliseconds(10);
  const auto run = [&](absl::optional<absl::Duration> whole) {
    setup_.proof.session_max_time = whole;
    auto opened = Session::Open(setup_, evaluator, clock_);
    EXPECT_TRUE(opened.ok()) << opened.status();
    while (!(*opened)->search_ended()) EXPECT_TRUE((*opened)->Advance().ok());
    auto session = (*opened)->Finish();
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_EQ((*opened)->ranking_cut(), whole.has_value());
    EXPECT_TRUE(RemoveSessionJournal(setup_).ok());
    return *session;
  };
  const proto::Session free = run(absl::nullopt);
  EXPECT_GT(free.time().rank_ns(), 60'000'000);
  // 40 ms of search, 10 of proof: 15 of ranking are left.
  const proto::Session bounded = run(absl::Milliseconds(65));
  EXPECT_EQ(bounded.time().rank_ns(), 16'000'000);
  EXPECT_LT(bounded.elapsed_ns(), 70'000'000);
  EXPECT_TRUE(bounded.has_winner());
  // Nothing is left: one round, and the fewest that a proof needs.
  const proto::Session late = run(absl::Milliseconds(40));
  EXPECT_EQ(late.time().rank_ns(), 4'000'000);
  EXPECT_EQ(late.time().prove_ns(), 10'000'000);
  EXPECT_TRUE(late.has_winner());
}

// Opening a process takes nine times as long as reading.
TEST_F(SessionTest, ATimeOfTheSessionPaysForOpeningProcesses) {
  FakeEvaluator evaluator;
  evaluator.open_ns = 9'000'000;
  setup_.header.mutable_budget()->clear_trials();
  setup_.header.mutable_budget()->set_time_ns(300'000'000);
  setup_.proof.max_time = absl::Milliseconds(200);
  const auto run = [&](absl::optional<absl::Duration> whole) {
    setup_.proof.session_max_time = whole;
    auto session = Run(evaluator);
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE(RemoveSessionJournal(setup_).ok());
    return *session;
  };
  const auto trials = [](const proto::Session& session) {
    return session.trials_size() - session.warm_start_trial_count();
  };
  const proto::Session bounded = run(absl::Milliseconds(600));
  EXPECT_EQ(trials(bounded), 30);
  EXPECT_LE(bounded.elapsed_ns() + bounded.time().effort().open_ns(),
            700'000'000);
  EXPECT_TRUE(bounded.has_winner());
  // A search alone is bounded by what it reads.
  EXPECT_GT(trials(run(absl::nullopt)), 2 * trials(bounded));
}

// Reading with its process takes 10 ms, the least proof ten readings.
TEST_F(SessionTest, ATimeOfTheSessionIsLeftToTheFinalists) {
  setup_.header.mutable_budget()->clear_trials();
  const auto run = [&](absl::Duration whole, std::string* short_text) {
    FakeEvaluator evaluator;
    evaluator.open_ns = 9'000'000;
    setup_.header.mutable_budget()->set_time_ns(
        absl::ToInt64Nanoseconds(whole / 2));
    setup_.proof.max_time = whole / 3;
    setup_.proof.session_max_time = whole;
    auto opened = Session::Open(setup_, evaluator, clock_);
    EXPECT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ((*opened)->ShortBudgetText(), "");  // nothing is known yet
    while (!(*opened)->search_ended()) EXPECT_TRUE((*opened)->Advance().ok());
    *short_text = (*opened)->ShortBudgetText();
    auto session = (*opened)->Finish();
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE(session->has_winner());
    EXPECT_TRUE(RemoveSessionJournal(setup_).ok());
    return absl::Nanoseconds(session->elapsed_ns() +
                             session->time().effort().open_ns());
  };
  std::string text;
  // Half of it for the search would leave too little for the proof. A round of
  // the ranking that has begun ends.
  EXPECT_LE(run(absl::Milliseconds(180), &text), absl::Milliseconds(190));
  EXPECT_EQ(text, "");
  // The least is two trials and a proof of one config.
  EXPECT_EQ(run(absl::Milliseconds(50), &text), absl::Milliseconds(120));
  EXPECT_THAT(text, HasSubstr("about 120 ms, not the 50.0 ms"));
}

TEST_F(SessionTest, TheProofIsOfRoundsThatHadNoPartInTheChoice) {
  setup_.header.mutable_budget()->set_trials(1000);
  // Whatever chooses sees the best as twice as fast as it is.
  class Flattering : public FakeEvaluator {
   public:
    Evaluation Evaluate(const Request& request) override {
      Evaluation answer = FakeEvaluator::Evaluate(request);
      if (request.purpose() != Request::PROVE &&
          answer.trial().outcome() == proto::OK) {
        SetTime(answer.trial().time_ns() / 2, *answer.mutable_trial());
      }
      return answer;
    }
  } evaluator;
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  const double truth = 1 - FakeEvaluator::TimeNs(session->proof().candidate()) /
                               FakeEvaluator::TimeNs(setup_.default_config);
  EXPECT_NEAR(session->proof().gain(), truth, .01);
  EXPECT_LE(session->proof().gain_low(), truth);
  EXPECT_GE(session->proof().gain_high(), truth);
  EXPECT_EQ(session->proof().rounds(),
            session->proof().candidate_measurements_size());
}

// The search's luckiest reading is of another config than the best: the one
// that leads is not the one that wins.
TEST_F(SessionTest, ReadingAgainCorrectsTheWinnersCurse) {
  setup_.header.mutable_budget()->set_trials(1000);
  setup_.finalists = 8;
  class Lucky : public FakeEvaluator {
   public:
    Evaluation Evaluate(const Request& request) override {
      Evaluation answer = FakeEvaluator::Evaluate(request);
      if (request.purpose() == Request::SEARCH &&
          CanonicalText(request.config()) == "tile=16,unroll=7") {
        SetTime(9e4, *answer.mutable_trial());
      }
      return answer;
    }
  } evaluator;
  evaluator.again_noise = .01;
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(CanonicalText(session->finalists(1).config()), "tile=16,unroll=7");
  EXPECT_EQ(CanonicalText(session->winner()), "tile=16,unroll=5");
}

// Where readings vary so much that the best of the search may be any of many,
// more of them are read again than the few that led, and the best is found
// though the search put it behind these.
TEST_F(SessionTest, WhereReadingsVaryMoreConfigsAreRanked) {
  setup_.header.mutable_budget()->set_trials(1000);
  setup_.finalists = 2;
  class Vague : public FakeEvaluator {
   public:
    Evaluation Evaluate(const Request& request) override {
      Evaluation answer = FakeEvaluator::Evaluate(request);
      if (request.purpose() == Request::SEARCH &&
          CanonicalText(request.config()) == "tile=16,unroll=5") {
        SetTime(answer.trial().time_ns() * 1.1, *answer.mutable_trial());
      }
      // A small part of what the search took.
      if (request.purpose() == Request::RANK) {
        answer.mutable_trial()->set_elapsed_ns(1);
      }
      return answer;
    }
  };
  setup_.rank_rounds = 4;
  for (const double noise : {.001, .06}) {
    ASSERT_TRUE(RemoveSessionJournal(setup_).ok());
    Vague evaluator;
    evaluator.again_noise = noise;
    const auto session = Run(evaluator);
    ASSERT_TRUE(session.ok()) << session.status();
    for (const proto::Finalist& finalist : session->finalists()) {
      EXPECT_TRUE(finalist.is_default() || finalist.measurements_size() > 0);
    }
    if (noise < .01) {
      EXPECT_EQ(session->finalists_size(), 3);  // two and the default
    } else {
      EXPECT_GT(session->finalists_size(), 3);
      EXPECT_EQ(CanonicalText(session->proof().candidate()),
                "tile=16,unroll=5");
    }
  }
}

// At every point at which a session can be killed, resuming gives the session
// of an uninterrupted run and measures nothing twice.
TEST_F(SessionTest, ResumesAtEveryPointWithTheSameTrials) {
  for (const char* strategy : {"random", "default"}) {
    setup_.header.set_strategy(strategy);
    setup_.header.mutable_budget()->set_trials(12);
    setup_.rank_rounds = 2;
    setup_.proof.max_rounds = 6;
    const std::string directory = setup_.journal_directory;

    setup_.journal_directory = absl::StrCat(directory, "/", strategy);
    FakeEvaluator uninterrupted;
    uninterrupted.search_noise = 0.05;
    const auto expected = Run(uninterrupted);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const int evaluations = static_cast<int>(uninterrupted.evaluated.size());

    for (int cut = 0; cut < evaluations; ++cut) {
      setup_.journal_directory =
          absl::StrCat(directory, "/", strategy, "-", cut);
      FakeEvaluator first;
      first.search_noise = 0.05;
      first.stop_after = cut;
      EXPECT_THROW((void)Run(first), Killed) << cut;
      FakeEvaluator second;
      second.search_noise = 0.05;
      const auto resumed = Run(second);
      ASSERT_TRUE(resumed.ok()) << resumed.status();
      EXPECT_EQ(resumed->sittings(), 2);
      proto::Session same = *resumed;
      same.set_sittings(1);
      same.clear_settings();  // both have none; a resumed one says so
      EXPECT_TRUE(same.SerializeAsString() == expected->SerializeAsString())
          << strategy << " " << cut;
      EXPECT_EQ(first.evaluated.size() + second.evaluated.size(), evaluations)
          << "something was measured twice, cut " << cut;
    }
    setup_.journal_directory = directory;
  }
}

// A scheduler decides by these readings (task_scheduler.h).
TEST_F(SessionTest, AResumedSessionReadsTheSameAfterTheSameTrials) {
  // Each look takes a while, so that thinking does, too.
  class TickingClock : public FakeClock {
   public:
    int64_t NowNs() const override { return ticks_ += 1'000; }

   private:
    mutable int64_t ticks_ = 0;
  } clock;
  setup_.header.set_strategy("default");
  setup_.header.mutable_budget()->set_trials(16);
  using Reading = std::tuple<int64_t, int64_t, absl::optional<double>, double>;
  const auto steps = [&](FakeEvaluator& evaluator) {
    auto session = Session::Open(setup_, evaluator, clock);
    EXPECT_TRUE(session.ok()) << session.status();
    std::vector<Reading> readings;
    while (!(*session)->search_ended()) {
      EXPECT_TRUE((*session)->Advance().ok());
      readings.emplace_back((*session)->trials(), (*session)->elapsed_ns(),
                            (*session)->expected_improvement(),
                            (*session)->best_cost().value_or(0));
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

TEST_F(SessionTest, AChangedSpaceStartsAJournalOfItsOwn) {
  FakeEvaluator evaluator;
  ASSERT_TRUE(Run(evaluator).ok());
  const std::string before =
      SessionJournal::Path(setup_.journal_directory, setup_.header);
  setup_.header.set_space_hash("other");
  EXPECT_NE(SessionJournal::Path(setup_.journal_directory, setup_.header),
            before);
}

TEST_F(SessionTest, KnownTrialsAreNotMeasuredAgainAndCountAsWarmStart) {
  setup_.header.mutable_budget()->set_trials(1000);
  for (int64_t i = 0; i < 60; ++i) {
    proto::Trial known;
    *known.mutable_config() = bound_->ToConfig(bound_->At(i));
    known.set_outcome(proto::OK);
    known.set_time_ns(FakeEvaluator::TimeNs(known.config()));
    setup_.known.push_back(known);
  }
  FakeEvaluator evaluator;
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->warm_start_trial_count(), 60);
  EXPECT_EQ(session->trials_size(), 64);
  EXPECT_EQ(CanonicalText(session->winner()), "tile=16,unroll=5");
}

// Configs from `first` on, as an earlier session of `id` found them.
std::vector<proto::Trial> KnownOf(const BoundSpace& space, int64_t first,
                                  int count, const std::string& id) {
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

TEST_F(SessionTest, StartsFromTheSameTrialsWhenTheHistoryChangedMeanwhile) {
  setup_.header.set_strategy("default");
  setup_.known = KnownOf(*bound_, 0, 5, "earlier");
  const std::string directory = setup_.journal_directory;
  setup_.journal_directory = directory + "/uninterrupted";
  FakeEvaluator whole;
  const auto expected = Run(whole);
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_EQ(expected->trials(0).session_id(), "earlier");

  setup_.journal_directory = directory + "/interrupted";
  FakeEvaluator killed;
  killed.stop_after = 10;
  EXPECT_THROW((void)Run(killed), Killed);
  // Another session of the task was recorded, with the best config among its
  // trials.
  setup_.known = KnownOf(*bound_, 30, 30, "meanwhile");
  FakeEvaluator resumed;
  const auto session = Run(resumed);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->sittings(), 2);
  EXPECT_EQ(session->warm_start_trial_count(), 5);
  EXPECT_EQ(session->trials(0).session_id(), "earlier");
  EXPECT_EQ(Tried(*session), Tried(*expected));
}

TEST_F(SessionTest, RecordsTheSettingsOnWhichItsSittingsAgree) {
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

TEST_F(SessionTest, AnOlderJournalGoesOnWithWhatTheHistorySaysNow) {
  ASSERT_TRUE(CreateDirectories(setup_.journal_directory).ok());
  proto::TuneJournalRecord first;
  *first.mutable_header() = setup_.header;
  first.mutable_header()->set_strategy(setup_.header.strategy());
  first.mutable_header()->set_seed(setup_.header.seed());
  {
    const auto journal = Journal::Open(
        SessionJournal::Path(setup_.journal_directory, first.header()));
    ASSERT_TRUE(journal.ok()) << journal.status();
    ASSERT_TRUE((*journal)->AppendAndSync(first.SerializeAsString()).ok());
  }
  setup_.known = KnownOf(*bound_, 0, 5, "earlier");
  FakeEvaluator evaluator;
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->sittings(), 2);
  EXPECT_EQ(session->warm_start_trial_count(), 5);
  EXPECT_EQ(session->trials_size(), 45);
}

TEST_F(SessionTest, StopsByTimePatienceAndTarget) {
  setup_.header.mutable_budget()->Clear();
  setup_.header.mutable_budget()->set_time_ns(
      10'000'000);  // ten evaluations of 1 ms
  FakeEvaluator by_time;
  EXPECT_EQ(Run(by_time)->stop_reason(), proto::TIME_SPENT);

  setup_.journal_directory += "/patience";
  setup_.header.mutable_budget()->Clear();
  setup_.header.mutable_budget()->set_patience_trials(10);
  FakeEvaluator by_patience;
  EXPECT_EQ(Run(by_patience)->stop_reason(), proto::PATIENCE_SPENT);

  setup_.journal_directory += "/target";
  setup_.header.mutable_budget()->Clear();
  setup_.header.mutable_budget()->set_target_time_ns(1.2e5);
  FakeEvaluator by_target;
  EXPECT_EQ(Run(by_target)->stop_reason(), proto::TARGET_REACHED);
}

TEST_F(SessionTest, AJournalThatIsNoneIsNamedInTheError) {
  ASSERT_TRUE(CreateDirectories(setup_.journal_directory).ok());
  proto::Session header = setup_.header;
  header.set_strategy(setup_.header.strategy());
  header.set_seed(setup_.header.seed());
  const std::string path =
      SessionJournal::Path(setup_.journal_directory, header);
  ASSERT_TRUE(WriteFileAtomically(path, "not a journal").ok());
  FakeEvaluator evaluator;
  const auto session = Run(evaluator);
  ASSERT_FALSE(session.ok());
  EXPECT_THAT(std::string(session.status().message()), HasSubstr(path));
}

// What sessions were before this engine: written by the last version that had
// its own in suites/, with the answers below (testdata/README.md).
class ScriptedEvaluator : public OneAtATime {
 public:
  static void Time(const proto::Config& config, uint64_t input_seed,
                   const Request& request, proto::Trial& trial) {
    double tile = 0, unroll = 0;
    for (const proto::KnobValue& value : config.set()) {
      (value.knob() == "tile" ? tile : unroll) =
          static_cast<double>(value.int_());
    }
    double time_ns = 1e5 + 1e3 * (tile - 16) * (tile - 16) +
                     2e3 * (unroll - 5) * (unroll - 5);
    trial.set_elapsed_ns(1'000'000 + static_cast<int64_t>(time_ns));
    const bool crashes = tile == 16 && unroll == 5;
    if (crashes || (tile == 8 && unroll == 8)) {
      trial.set_outcome(crashes ? proto::CRASHED : proto::INVALID);
      trial.set_detail("scripted");
      return;
    }
    uint64_t hash = 1469598103934665603u;
    for (const char c : CanonicalText(config)) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    }
    Rng rng(hash + 1000003 * input_seed);
    time_ns *= 1 + .03 * (2 * rng.UniformReal() - 1);
    trial.set_outcome(request.has_hopeless_above() &&
                              time_ns > request.hopeless_above()
                          ? proto::CENSORED
                          : proto::OK);
    FakeEvaluator::SetTime(time_ns, trial);
    trial.set_compile_ns(17);
    trial.set_error_in_tolerances(.25);
  }
  Evaluation Evaluate(const Request& request) override {
    ++evaluated;
    Evaluation answer;
    Time(request.config(),
         request.purpose() == Request::SEARCH ? request.round() % 3
                                              : 1000 + request.round(),
         request, *answer.mutable_trial());
    return answer;
  }
  int evaluated = 0;
};

// Each look takes a microsecond.
class TickingClock : public FakeClock {
 public:
  int64_t NowNs() const override { return ticks_ += 1'000; }

 private:
  mutable int64_t ticks_ = 0;
};

class GoldenSessionTest : public SessionTest,
                          public ::testing::WithParamInterface<const char*> {
 protected:
  GoldenSessionTest() {
    setup_.header.set_strategy(GetParam());
    setup_.header.mutable_task()->set_operator_name("scripted");
    setup_.header.mutable_settings()->set_max_samples(200);
    setup_.header.mutable_budget()->set_trials(24);
    for (int i = 0; i < 3; ++i) {
      proto::Trial known;
      *known.mutable_config() = bound_->ToConfig(bound_->At(i));
      known.set_outcome(proto::OK);
      known.set_time_ns(3e5 + i);
      known.set_session_id("earlier");
      setup_.known.push_back(known);
    }
    const auto golden = ReadFile(
        absl::StrCat("tuning/session/testdata/", GetParam(), ".session.pb"));
    EXPECT_TRUE(golden.ok()) << golden.status();
    EXPECT_TRUE(golden_.ParseFromString(*golden));
  }

  // All but what choosing and proving the winner changed since: the rounds in
  // which finalists are read again, who is beside the first four, and what
  // follows from them.
  static std::string SearchOf(proto::Session session) {
    session.clear_winner();
    session.clear_proof();
    session.clear_elapsed_ns();
    session.clear_sittings();
    session.clear_time();
    while (session.finalists_size() > 1 + SessionSetup().finalists) {
      session.mutable_finalists()->RemoveLast();
    }
    for (proto::Finalist& finalist : *session.mutable_finalists()) {
      finalist.clear_measurements();
      finalist.clear_time_ns();
      finalist.clear_outcome();
    }
    return session.SerializeAsString();
  }

  proto::Session golden_;
};

TEST_P(GoldenSessionTest, SearchesToTheByteAsBeforeTheEngine) {
  ScriptedEvaluator evaluator;
  TickingClock clock;
  const auto session = RunSession(setup_, evaluator, clock);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(SearchOf(*session) == SearchOf(golden_));
  int64_t elapsed_ns = 0;
  for (int i = 3; i < session->trials_size(); ++i) {
    elapsed_ns += 1'000 + session->trials(i).elapsed_ns();
  }
  EXPECT_GT(session->elapsed_ns(), elapsed_ns);
}

// Journals cut after 7 and 20 trials, with 4 readings and with 15.
TEST_P(GoldenSessionTest, JournalsFromBeforeTheEngineGoOn) {
  for (const int cut : {7, 20, 30, 41}) {
    SCOPED_TRACE(cut);
    setup_.journal_directory += "x";
    ASSERT_TRUE(CreateDirectories(setup_.journal_directory).ok());
    const auto old = ReadFile(absl::StrCat("tuning/session/testdata/",
                                           GetParam(), "_", cut, ".journal"));
    ASSERT_TRUE(old.ok()) << old.status();
    ASSERT_TRUE(
        WriteFileAtomically(
            SessionJournal::Path(setup_.journal_directory, setup_.header), *old)
            .ok());
    ScriptedEvaluator evaluator;
    TickingClock clock;
    auto session = Session::Open(setup_, evaluator, clock);
    ASSERT_TRUE(session.ok()) << session.status();
    while (!(*session)->search_ended()) ASSERT_TRUE((*session)->Advance().ok());
    EXPECT_EQ(evaluator.evaluated, std::max(0, 24 - cut));
    const auto record = (*session)->Finish();
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_TRUE(SearchOf(*record) == SearchOf(golden_));
    EXPECT_EQ(record->sittings(), 2);
    EXPECT_TRUE(record->proof().claimed());
    EXPECT_EQ(CanonicalText(record->winner()),
              CanonicalText(record->proof().candidate()));
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, GoldenSessionTest,
                         ::testing::Values("random", "default"));

// A device with several places, whose answers come in an order of its own and
// which now and then loses a request.
class ManySlots : public Evaluator {
 public:
  ManySlots(int slots, uint64_t seed) : slots_(slots), rng_(seed) {}
  absl::StatusOr<Offer> Open(const proto::Task&) override {
    Offer offer;
    offer.set_compile_ahead(1);
    offer.set_measure_slots(slots_);
    offer.set_begins_ahead(begins_ahead);
    return offer;
  }
  void Submit(Request request) override {
    submitted.push_back(CanonicalText(request.config()));
    const bool of_round = request.purpose() != Request::SEARCH;
    most_asked_at_once = std::max(most_asked_at_once, request.of_round());
    waiting_.push_back(std::move(request));
    if (of_round) {
      most_of_round =
          std::max(most_of_round, static_cast<int>(waiting_.size()));
    }
    most_in_flight =
        std::max(most_in_flight, static_cast<int>(waiting_.size()));
  }
  std::vector<Evaluation> Poll(absl::Duration) override {
    if (waiting_.empty()) return {};
    if (stop_after-- == 0) throw Killed();
    const size_t i = rng_.UniformInt(waiting_.size());
    Request request = std::move(waiting_[i]);
    waiting_.erase(waiting_.begin() + i);
    Evaluation answer;
    answer.set_ticket(request.ticket());
    if (losses > 0 && rng_.UniformReal() < .2) {
      --losses;
      answer.set_lost(true);
      return {answer};
    }
    ScriptedEvaluator::Time(request.config(), 0, request,
                            *answer.mutable_trial());
    *answer.mutable_trial()->mutable_config() = request.config();
    return {answer};
  }
  void Cancel(int64_t) override {}

  bool begins_ahead = false;
  int most_in_flight = 0, most_of_round = 0, most_asked_at_once = 0;
  int losses = 0;
  int stop_after = -1;
  std::vector<std::string> submitted;

 private:
  const int slots_;
  Rng rng_;
  std::vector<Request> waiting_;
};

TEST_F(SessionTest, KeepsAsManyInFlightAsOfferedAndTellsInAnyOrder) {
  for (const char* strategy : {"random", "default"}) {
    setup_.header.set_strategy(strategy);
    ManySlots evaluator(3, 7);
    const auto session = RunSession(setup_, evaluator, clock_);
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_EQ(session->trials_size(), 40);
    EXPECT_EQ(evaluator.most_in_flight, 4);
    const std::vector<std::string> tried = Tried(*session);
    EXPECT_EQ(std::set<std::string>(tried.begin(), tried.end()).size(), 40);
  }
}

TEST_F(SessionTest, WhatAnEvaluatorLosesIsSubmittedAgainAndNeverTold) {
  ManySlots evaluator(1, 3);
  evaluator.losses = 6;
  const auto session = RunSession(setup_, evaluator, clock_);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->trials_size(), 40);
  EXPECT_EQ(evaluator.losses, 0);
  for (const proto::Trial& trial : session->trials()) {
    EXPECT_NE(trial.outcome(), proto::OUTCOME_UNSPECIFIED);
  }
}

TEST_F(SessionTest, ReadingsOfARoundThatAreAskedForAtOnceAreTheSame) {
  std::vector<proto::Session> sessions;
  for (const bool begins_ahead : {false, true}) {
    ManySlots evaluator(1, 5);
    evaluator.begins_ahead = begins_ahead;
    const auto session = RunSession(setup_, evaluator, clock_);
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_EQ(evaluator.most_of_round, begins_ahead ? setup_.finalists : 1);
    EXPECT_EQ(evaluator.most_asked_at_once, evaluator.most_of_round);
    sessions.push_back(*session);
    ASSERT_TRUE(RemoveSessionJournal(setup_).ok());
  }
  ASSERT_TRUE(sessions[0].has_proof());
  EXPECT_EQ(CanonicalText(sessions[0].winner()),
            CanonicalText(sessions[1].winner()));
  EXPECT_EQ(sessions[0].proof().rounds(), sessions[1].proof().rounds());
  EXPECT_EQ(sessions[0].proof().gain(), sessions[1].proof().gain());
  ASSERT_EQ(sessions[0].finalists_size(), sessions[1].finalists_size());
  for (int i = 0; i < sessions[0].finalists_size(); ++i) {
    EXPECT_EQ(sessions[0].finalists(i).measurements_size(),
              sessions[1].finalists(i).measurements_size());
  }
  ManySlots loses(1, 5);
  loses.begins_ahead = true;
  loses.losses = 15;
  const auto session = RunSession(setup_, loses, clock_);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(loses.losses, 0);
  EXPECT_TRUE(session->has_proof());
}

TEST_F(SessionTest, GivesUpOnAnEvaluatorThatLosesEverything) {
  class Gone : public OneAtATime {
   public:
    Evaluation Evaluate(const Request&) override {
      Evaluation answer;
      answer.set_lost(true);
      return answer;
    }
  } evaluator;
  const auto session = RunSession(setup_, evaluator, clock_);
  EXPECT_EQ(session.status().code(), absl::StatusCode::kUnavailable);
  FakeEvaluator back;
  const auto resumed = Run(back);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->trials_size(), 40);
}

// With several in flight: what was in flight is tried again, nothing else is,
// and the strategy goes on as if nothing had happened.
TEST_F(SessionTest, ResumesWithSeveralInFlight) {
  setup_.header.set_strategy("default");
  setup_.header.mutable_budget()->set_trials(20);
  const std::string directory = setup_.journal_directory;
  for (int cut = 0; cut < 20; ++cut) {
    SCOPED_TRACE(cut);
    setup_.journal_directory = absl::StrCat(directory, "/", cut);
    ManySlots first(3, 7);
    first.stop_after = cut;
    EXPECT_THROW((void)RunSession(setup_, first, clock_), Killed);
    ManySlots second(3, 8);
    auto session = Session::Open(setup_, second, clock_);
    ASSERT_TRUE(session.ok()) << session.status();
    while (!(*session)->search_ended()) {
      const absl::Status status = (*session)->Advance();
      ASSERT_TRUE(status.ok()) << status;
    }
    EXPECT_EQ((*session)->trials(), 20);
    EXPECT_EQ(second.submitted.size(), 20 - cut);
    // What was asked and not answered comes first.
    for (size_t i = 0; i < 3 && i < second.submitted.size() && cut > 0; ++i) {
      EXPECT_THAT(first.submitted, ::testing::Contains(second.submitted[i]));
    }
  }
}

// Objectives other than time, as a command prints them.
class MetricsEvaluator : public OneAtATime {
 public:
  Evaluation Evaluate(const Request& request) override {
    double tile = 0, unroll = 0;
    for (const proto::KnobValue& value : request.config().set()) {
      (value.knob() == "tile" ? tile : unroll) =
          static_cast<double>(value.int_());
    }
    Evaluation answer;
    answer.mutable_trial()->set_outcome(proto::OK);
    answer.mutable_trial()->set_elapsed_ns(1);
    // Throughput and memory both grow with tile.
    Add("throughput", 100 * tile / (1 + std::abs(unroll - 5)),
        *answer.mutable_trial());
    Add("memory", 10 * tile + unroll, *answer.mutable_trial());
    return answer;
  }
  static void Add(const char* metric, double value, proto::Trial& trial) {
    proto::MetricSamples& samples = *trial.add_objectives();
    samples.set_metric(metric);
    samples.add_values(value);
  }
};

class ObjectivesTest : public SessionTest {
 protected:
  ObjectivesTest() {
    setup_.header.mutable_budget()->set_trials(1000);
    proto::Objective& throughput = *setup_.header.add_objectives();
    throughput.set_metric("throughput");
    throughput.set_direction(proto::HIGHER_IS_BETTER);
    proto::Objective& memory = *setup_.header.add_objectives();
    memory.set_metric("memory");
    memory.set_direction(proto::LOWER_IS_BETTER);
  }
  absl::StatusOr<proto::Session> RunIt() {
    MetricsEvaluator evaluator;
    return RunSession(setup_, evaluator, clock_);
  }
};

TEST_F(ObjectivesTest, AFrontHasNoWinner) {
  const auto session = RunIt();
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_FALSE(session->has_winner());
  EXPECT_FALSE(session->has_proof());
  // Each tile at its best unroll, less memory at lower unrolls, the default.
  EXPECT_GT(session->finalists_size(), 8);
}

TEST_F(ObjectivesTest, WeightsNameAWinner) {
  setup_.header.mutable_objectives(0)->set_weight(1);
  setup_.header.mutable_objectives(1)->set_weight(.1);
  const auto session = RunIt();
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(CanonicalText(session->winner()), "tile=128,unroll=5");
  EXPECT_TRUE(session->proof().claimed());
}

TEST_F(ObjectivesTest, LimitsNameAWinner) {
  setup_.header.mutable_objectives(1)->set_limit(330);
  const auto session = RunIt();
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(CanonicalText(session->winner()), "tile=32,unroll=5");
  EXPECT_EQ(session->proof().metric(), "throughput");
  // From 20 at the default: 3200 / 20 - 1.
  EXPECT_NEAR(session->proof().gain(), 159, .01);
  ASSERT_EQ(session->finalists(1).objectives_size(), 2);
  EXPECT_EQ(session->finalists(1).objectives(1).values(0), 325);
}

TEST_F(ObjectivesTest, ALimitOfTheBestFollowsTheBest) {
  setup_.header.mutable_objectives(0)->Swap(
      setup_.header.mutable_objectives(1));
  // The least memory at no less than .5 of the best throughput.
  setup_.header.mutable_objectives(1)->set_limit_over_best(.5);
  const auto session = RunIt();
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->has_winner());
  double best = 0;
  for (const proto::Trial& trial : session->trials()) {
    best = std::max(best, ValueOf(trial, "throughput").value_or(0));
  }
  // The session says what the limit came to, and the winner keeps it.
  EXPECT_EQ(session->objectives(1).limit(), .5 * best);
  double least = 1e300;
  for (const proto::Trial& trial : session->trials()) {
    if (*ValueOf(trial, "throughput") >= .5 * best) {
      least = std::min(least, *ValueOf(trial, "memory"));
    }
  }
  for (const proto::Finalist& finalist : session->finalists()) {
    if (CanonicalText(finalist.config()) != CanonicalText(session->winner())) {
      continue;
    }
    EXPECT_GE(*ValueOf(finalist, "throughput"), .5 * best);
    EXPECT_EQ(*ValueOf(finalist, "memory"), least);
  }
}

TEST_F(ObjectivesTest, AnObjectiveIsComputedFromMetrics) {
  proto::Objective product;
  product.set_metric("memory_time");
  product.set_direction(proto::LOWER_IS_BETTER);
  auto* term = product.add_terms();
  term->set_factor(2);
  term->add_metrics("memory");
  term->add_metrics("memory");
  setup_.header.clear_objectives();
  *setup_.header.add_objectives() = product;
  const auto session = RunIt();
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->has_winner());
  for (const proto::Trial& trial : session->trials()) {
    const double memory = *ValueOf(trial, "memory");
    EXPECT_EQ(*ValueOf(trial, product), 2 * memory * memory);
  }
  // Finalists hold what was read, and the value follows.
  const proto::Finalist& finalist = session->finalists(0);
  ASSERT_TRUE(ValueOf(finalist, "memory").has_value());
  EXPECT_TRUE(ValueOf(finalist, product).has_value());
}

// Of what takes long, little is metered; the winner is.
TEST_F(ObjectivesTest, CostlyMetricsAreReadOfFew) {
  class Costly : public OneAtATime {
   public:
    absl::StatusOr<Offer> Open(const proto::Task&) override {
      Offer offer;
      offer.add_costly_metrics("joules");
      return offer;
    }
    Evaluation Evaluate(const Request& request) override {
      EXPECT_EQ(request.metrics().size(),
                request.purpose() == Request::SEARCH ? 2 : 1);
      const double tile = static_cast<double>(request.config().set(0).int_());
      const double unroll = static_cast<double>(request.config().set(1).int_());
      const double time_ns = 1e6 / tile * (1 + .01 * unroll);
      Evaluation answer;
      answer.mutable_trial()->set_outcome(proto::OK);
      answer.mutable_trial()->set_time_ns(time_ns);
      answer.mutable_trial()->add_measurements()->set_median_ns(time_ns);
      if (request.has_meter_below_ns() && time_ns >= request.meter_below_ns()) {
        return answer;
      }
      metered += request.purpose() == Request::SEARCH ? 1 : 0;
      auto* joules = answer.mutable_trial()->add_objectives();
      joules->set_metric("joules");
      // More unrolling takes time and saves energy.
      joules->add_values(time_ns * (1 - .05 * unroll));
      return answer;
    }
    int metered = 0;
  } evaluator;
  setup_.header.mutable_budget()->set_trials(50);
  setup_.header.clear_objectives();
  proto::Objective* joules = setup_.header.add_objectives();
  joules->set_metric("joules");
  joules->set_direction(proto::LOWER_IS_BETTER);
  const auto session = RunSession(setup_, evaluator, clock_);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_LE(evaluator.metered, kMeteredTrials);
  EXPECT_GT(evaluator.metered, 2);
  EXPECT_GT(session->trials_size(), 2 * kMeteredTrials);
  EXPECT_THAT(CanonicalText(session->winner()),
              ::testing::StartsWith("tile=128,"));
  // What was not read is not stored.
  int unknown = 0;
  for (const proto::Trial& trial : session->trials()) {
    unknown += trial.outcome() == proto::OK && !ValueOf(trial, "joules");
  }
  EXPECT_GT(unknown, 0);
}

TEST_F(ObjectivesTest, SessionsOfOtherObjectivesHaveJournalsOfTheirOwn) {
  ASSERT_TRUE(RunIt().ok());
  setup_.header.mutable_objectives(1)->set_limit(330);
  EXPECT_FALSE(HasSessionJournal(setup_));
  auto session = RunIt();
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->sittings(), 1);
  // And each goes on with its own.
  session = RunIt();
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->sittings(), 2);
  ASSERT_TRUE(RemoveSessionJournal(setup_).ok());
  setup_.header.mutable_objectives(1)->clear_limit();
  EXPECT_TRUE(HasSessionJournal(setup_));
}

TEST_F(ObjectivesTest, AJournalWhoseNameLacksTheObjectivesGoesOn) {
  ASSERT_TRUE(RunIt().ok());
  proto::Session unnamed = setup_.header;
  unnamed.clear_objectives();
  const std::string& folder = setup_.journal_directory;
  const std::string earlier = SessionJournal::Path(folder, unnamed);
  ASSERT_EQ(rename(SessionJournal::Path(folder, setup_.header).c_str(),
                   earlier.c_str()),
            0);
  // It is not that of a session that optimises something else.
  setup_.header.mutable_objectives(1)->set_limit(330);
  EXPECT_FALSE(HasSessionJournal(setup_));
  setup_.header.mutable_objectives(1)->clear_limit();
  EXPECT_EQ(SessionJournal::Path(folder, setup_.header), earlier);
  const auto session = RunIt();
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->sittings(), 2);
}

TEST_F(ObjectivesTest, AMissingObjectiveIsUnknownAndNoFailure) {
  class Partly : public MetricsEvaluator {
   public:
    Evaluation Evaluate(const Request& request) override {
      Evaluation answer = MetricsEvaluator::Evaluate(request);
      if (CanonicalText(request.config()) == "tile=2,unroll=5") {
        answer.mutable_trial()->mutable_objectives()->RemoveLast();
      }
      return answer;
    }
  } evaluator;
  const auto session = RunSession(setup_, evaluator, clock_);
  ASSERT_TRUE(session.ok()) << session.status();
  for (const proto::Trial& trial : session->trials()) {
    EXPECT_EQ(trial.outcome(), proto::OK);
  }
}

}  // namespace
}  // namespace optrail::tuning
