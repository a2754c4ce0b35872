// Sessions that were killed, and journals of earlier versions.

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/file/journal.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/session_journal.h"
#include "tuning/session/session_test_fixture.h"

namespace optrail::tuning {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

}  // namespace
}  // namespace optrail::tuning
