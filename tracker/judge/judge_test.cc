#include "tracker/judge/judge.h"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/statistics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/detect/online.h"
#include "tracker/judge/evidence.h"
#include "tracker/series/series.h"

namespace optrail::tracker {
namespace {

using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::string CommitId(int i) { return absl::StrFormat("%040x", i + 1); }

// One series of one process a point, in the noise of 1%.
class JudgeTest : public ::testing::Test {
 protected:
  void Measure(int count, double level_ns,
               const std::function<void(proto::Run&)>& with = nullptr) {
    for (int k = 0; k < count; ++k) {
      const int i = static_cast<int>(runs_.size());
      proto::Run run;
      run.set_run_id(absl::StrFormat("20260101T%06dZ-%d", i, i));
      run.set_started_unix_ns(i);
      run.mutable_commit()->set_id(CommitId(i));
      run.mutable_commit()->set_branch("main");
      run.mutable_commit()->set_first_parent_position(i);
      run.mutable_hardware()->set_id("machine");
      run.mutable_toolchain()->set_compiler("g++ 12");
      proto::BenchmarkResult* result = run.add_results();
      result->mutable_key()->set_operator_name("BM_x");
      result->set_outcome(proto::OK);
      result->add_measurements()->set_median_ns(
          level_ns * std::exp(.01 * rng_.Gaussian()));
      if (with) with(run);
      runs_.push_back(std::move(run));
    }
  }

  void Say(proto::TriageKind kind, int commit, double effect = 0) {
    proto::TriageRecord record;
    record.set_record_id(absl::StrFormat("r%d", records_.size()));
    record.set_kind(kind);
    record.set_pattern("BM_.*");
    record.mutable_commit()->set_id(CommitId(commit));
    record.set_text("because");
    if (kind == proto::MUTE) record.set_until_unix_ns(1000);
    if (effect != 0) record.set_effect(effect);
    records_.push_back(record);
  }

  Judgement Judge() {
    series_ = BuildSeries(runs_);
    return JudgeSeries(series_.at(0), TriageBook(records_, /*now=*/0));
  }

  Rng rng_{1};
  std::vector<proto::Run> runs_;
  std::vector<Series> series_;
  std::vector<proto::TriageRecord> records_;
};

TEST_F(JudgeTest, ANewChangeForTheWorseIsARegressionAndTheNorm) {
  Measure(40, 100);
  Measure(20, 110);
  const Judgement judgement = Judge();
  EXPECT_EQ(judgement.standing, Verdict::kSlower);
  ASSERT_THAT(judgement.changes, SizeIs(1));
  EXPECT_TRUE(judgement.changes[0].IsAlert());
  EXPECT_EQ(judgement.decided_by, 0);
  EXPECT_EQ(judgement.baseline_begin, 40);
}

TEST_F(JudgeTest, AStepThatStandsApartAlertsBeforeItIsConfirmed) {
  Measure(12, 100);
  Measure(3, 140);
  EXPECT_FALSE(Judge().changes.at(0).IsAlert()) << "three points are few";
  Measure(1, 140);
  const Judgement judgement = Judge();
  ASSERT_THAT(judgement.changes, SizeIs(1));
  EXPECT_TRUE(judgement.changes[0].provisional);
  EXPECT_TRUE(judgement.changes[0].IsAlert());
  EXPECT_EQ(judgement.standing, Verdict::kSlower);
  EXPECT_EQ(judgement.NormOf(16, series_[0], TriageBook({}, 0)), 0);

  // One of a size that noise may have is none before that.
  runs_.clear();
  Measure(12, 100);
  Measure(8, 104);
  for (const Change& change : Judge().changes) {
    EXPECT_FALSE(change.IsAlert());
  }
}

TEST_F(JudgeTest, AnAcknowledgedPointHasARowBeforeItIsConfirmed) {
  Measure(12, 100);
  Measure(2, 140);
  Say(proto::ACKNOWLEDGE, 12);
  const Judgement judgement = Judge();
  ASSERT_THAT(judgement.changes, SizeIs(1));
  EXPECT_EQ(judgement.changes[0].opinion.state, ChangeState::kAcknowledged);
  EXPECT_EQ(judgement.standing, Verdict::kUnchanged);
  const TriageBook book(records_, 0);
  EXPECT_EQ(judgement.NormOf(14, series_[0], book), 12);
  EXPECT_EQ(judgement.NormOf(12, series_[0], book), 0) << "not known then";
}

TEST_F(JudgeTest, ARegressionThatNobodyAnsweredStaysForEver) {
  Measure(40, 100);
  Measure(200, 110);
  EXPECT_EQ(Judge().standing, Verdict::kSlower);
  EXPECT_EQ(Judge().why, "since 200 points");
  // Another compiler is no answer.
  Measure(30, 105, [](proto::Run& run) {
    run.mutable_toolchain()->set_compiler("g++ 13");
  });
  EXPECT_EQ(Judge().standing, Verdict::kSlower);
  Say(proto::ACKNOWLEDGE, 40);
  EXPECT_EQ(Judge().standing, Verdict::kUnchanged);
}

// Too few points for the detector: the gate is red at the first of them.
TEST_F(JudgeTest, NewestPointsThatStandOffAreMaybeSlowerFromTheFirstOn) {
  Measure(30, 100);
  EXPECT_EQ(Judge().standing, Verdict::kUnchanged);
  for (int since = 1; Judge().standing != Verdict::kSlower; ++since) {
    ASSERT_LT(since, 30);
    Measure(1, 112);
    const Judgement judgement = Judge();
    if (judgement.standing == Verdict::kSlower) break;
    EXPECT_EQ(judgement.standing, Verdict::kMaybeSlower) << since;
    ASSERT_THAT(judgement.changes, SizeIs(1));
    EXPECT_EQ(judgement.changes[0].PointsSince(), since);
    EXPECT_TRUE(judgement.changes[0].IsOpen());
    EXPECT_THAT(judgement.why, HasSubstr("gate judges the newest run"));
    ASSERT_TRUE(judgement.changes[0].points_to_answer);
    EXPECT_LT(*judgement.changes[0].points_to_answer, 30);
  }
}

TEST_F(JudgeTest, NewestPointsWithinTheNoiseAreNoChange) {
  int marked = 0;
  for (int k = 0; k < 300; ++k) {
    runs_.clear();
    Measure(30, 100);
    marked += Judge().standing == Verdict::kMaybeSlower;
  }
  EXPECT_LE(marked, 3);
}

// The report shows standings, `changes` counts alerts.
TEST_F(JudgeTest, WhatIsAnAlertIsARegressionAndNothingElseIs) {
  for (int story = 0; story < 60; ++story) {
    runs_.clear();
    records_.clear();
    double level = 100;
    for (int stretch = 0; stretch < 5; ++stretch) {
      level *= std::exp(.08 * rng_.Gaussian());
      Measure(5 + static_cast<int>(40 * rng_.UniformReal()), level,
              [&](proto::Run& run) {
                if (story % 3 != 0 || stretch != 3) return;
                run.mutable_toolchain()->set_compiler("g++ 13");
              });
    }
    if (story % 2 == 0) {
      Say(proto::MUTE, static_cast<int>(runs_.size() * rng_.UniformReal()));
    }
    const Judgement judgement = Judge();
    int alerts = 0;
    for (const Change& change : judgement.changes) {
      alerts += change.IsAlert() && change.worse_by >= kLeastEffect;
    }
    EXPECT_EQ(judgement.standing == Verdict::kSlower, alerts > 0) << story;
  }
}

TEST_F(JudgeTest, WhatIsAnsweredIsNoRegression) {
  Measure(40, 100);
  Measure(20, 110);
  for (const proto::TriageKind kind :
       {proto::ACKNOWLEDGE, proto::EXPECT, proto::MUTE}) {
    records_.clear();
    Say(kind, 40, kind == proto::EXPECT ? .12 : 0);
    const Judgement judgement = Judge();
    EXPECT_EQ(judgement.standing, Verdict::kUnchanged) << kind;
    EXPECT_THAT(judgement.why, HasSubstr("because"));
    ASSERT_THAT(judgement.changes, SizeIs(1));
    EXPECT_FALSE(judgement.changes[0].IsAlert());
  }
  records_.clear();
  Say(proto::EXPECT, 40, .02);
  EXPECT_EQ(Judge().standing, Verdict::kSlower);
}

TEST_F(JudgeTest, AnAcknowledgementIsABaselineBeforeItsChangeIsFound) {
  Measure(40, 100);
  Measure(1, 104);
  Say(proto::ACKNOWLEDGE, 40);
  EXPECT_EQ(Judge().baseline_begin, 40);
  records_.clear();
  EXPECT_EQ(Judge().baseline_begin, 0);
}

TEST_F(JudgeTest, LevelsOfTwoEpochsDoNotCompare) {
  Measure(40, 100);
  Measure(25, 110, [](proto::Run& run) {
    run.mutable_toolchain()->set_compiler("g++ 13");
  });
  const Judgement judgement = Judge();
  EXPECT_NE(judgement.standing, Verdict::kSlower);
  ASSERT_THAT(judgement.changes, SizeIs(1));
  EXPECT_EQ(judgement.changes[0].kind, ChangeKind::kEpoch);
  EXPECT_NEAR(judgement.changes[0].change.relative_change, .1, .02);
  EXPECT_EQ(ChangeText(judgement.changes[0]), "new epoch");
  EXPECT_EQ(judgement.baseline_begin, 40);
  EXPECT_EQ(judgement.epoch_begins, (std::vector<int>{0, 40}));
}

TEST_F(JudgeTest, ARegressionThatWasFixedIsNoAlert) {
  Measure(40, 100);
  Measure(30, 110);
  Measure(30, 100);
  const Judgement judgement = Judge();
  ASSERT_THAT(judgement.changes, SizeIs(2));
  EXPECT_TRUE(judgement.changes[0].undone);
  EXPECT_FALSE(judgement.changes[0].IsAlert());
  EXPECT_NE(judgement.standing, Verdict::kSlower);
}

TEST_F(JudgeTest, AnImprovementThatIsLostIsAnAlert) {
  Measure(40, 110);
  Measure(30, 100);
  Measure(30, 110);
  const Judgement judgement = Judge();
  ASSERT_THAT(judgement.changes, SizeIs(2));
  EXPECT_TRUE(judgement.changes[1].IsAlert());
  EXPECT_EQ(judgement.standing, Verdict::kSlower);
}

TEST_F(JudgeTest, WhatCannotBeJudgedIsNeverUnchanged) {
  Measure(1, 100);
  EXPECT_EQ(Judge().standing, Verdict::kNoBaseline);
  while (runs_.size() < OnlineDetector::kFewestPoints - 1) {
    Measure(1, 100);
    EXPECT_EQ(Judge().standing, Verdict::kCannotTell) << runs_.size();
  }
  Measure(30, 100);
  EXPECT_EQ(Judge().standing, Verdict::kUnchanged);
  Measure(3, 100, [](proto::Run& run) {
    run.mutable_toolchain()->set_compiler("g++ 13");
  });
  EXPECT_EQ(Judge().standing, Verdict::kCannotTell);
  EXPECT_THAT(Judge().why, HasSubstr("3 of 20 points of a new epoch"));
}

TEST_F(JudgeTest, NoiseThatHidesChangesIsSaid) {
  for (int i = 0; i < 60; ++i) Measure(1, 100 * std::exp(.1 * rng_.Gaussian()));
  const Judgement judgement = Judge();
  EXPECT_EQ(judgement.standing, Verdict::kCannotTell);
  EXPECT_THAT(judgement.why, HasSubstr("noise hides"));
}

TEST_F(JudgeTest, TheNewestPointThatFailedIsSaid) {
  Measure(40, 100);
  Measure(1, 100, [](proto::Run& run) {
    run.mutable_results(0)->clear_measurements();
    run.mutable_results(0)->set_outcome(proto::CRASHED);
    run.mutable_results(0)->set_detail("signal 11");
  });
  EXPECT_EQ(Judge().standing, Verdict::kFailed);
  EXPECT_EQ(Judge().why, "CRASHED: signal 11");
  EXPECT_EQ(Judge().weights.back(), 0);
}

TEST_F(JudgeTest, ACrashOfOneProcessOfTheNewestPointIsSaid) {
  Measure(40, 100);
  Measure(1, 100, [](proto::Run& run) {
    run.mutable_results(0)->set_outcome(proto::CRASHED);
    run.mutable_results(0)->set_detail("signal 11");
  });
  EXPECT_EQ(Judge().standing, Verdict::kFailed);
  EXPECT_EQ(Judge().why, "CRASHED: signal 11");
}

TEST_F(JudgeTest, WhatIsSkippedIsMissingOrWasNeverMeasured) {
  const auto skip = [](proto::Run& run) {
    run.mutable_results(0)->clear_measurements();
    run.mutable_results(0)->set_outcome(proto::UNSUPPORTED);
    run.mutable_results(0)->set_detail("needs AVX-512");
  };
  Measure(3, 100, skip);
  EXPECT_EQ(Judge().standing, Verdict::kSkipped);
  EXPECT_EQ(Judge().why, "skipped: needs AVX-512");
  Measure(30, 100);
  EXPECT_EQ(Judge().standing, Verdict::kUnchanged);
  Measure(1, 100, skip);
  EXPECT_EQ(Judge().standing, Verdict::kMissing);
  EXPECT_EQ(Judge().why, "skipped: needs AVX-512");
}

TEST_F(JudgeTest, AFailureIsOneOfEveryMetric) {
  const auto with_cpu_time = [](proto::Run& run) {
    proto::MetricSamples* cpu =
        run.mutable_results(0)->mutable_measurements(0)->add_metrics();
    cpu->set_metric("cpu_time");
    cpu->set_unit("ns");
    cpu->add_values(90);
  };
  JudgeOptions options;
  options.runs = &runs_;
  for (const auto& [outcome, standing] :
       {std::make_pair(proto::CRASHED, Verdict::kFailed),
        std::make_pair(proto::CONTENDED, Verdict::kCannotTell),
        std::make_pair(proto::UNSUPPORTED, Verdict::kMissing)}) {
    Measure(30, 100, with_cpu_time);
    Measure(1, 100, [outcome = outcome](proto::Run& run) {
      run.mutable_results(0)->clear_measurements();
      run.mutable_results(0)->set_outcome(outcome);
    });
    series_ = BuildSeries(runs_);
    ASSERT_THAT(series_, SizeIs(2));
    for (const Judgement& judgement :
         JudgeAll(series_, TriageBook({}, 0), options)) {
      EXPECT_EQ(judgement.standing, standing) << judgement.why;
    }
  }
}

// Nobody measures a branch again that was merged or given up.
TEST_F(JudgeTest, AFailureIsPastOnceALaterCommitOfAnotherBranchWorks) {
  const auto crash = [](int position) {
    return [position](proto::Run& run) {
      run.mutable_commit()->set_branch("feature");
      run.mutable_commit()->set_first_parent_position(position);
      run.mutable_results(0)->clear_measurements();
      run.mutable_results(0)->set_outcome(proto::CRASHED);
    };
  };
  const auto judge = [&] {
    series_ = BuildSeries(runs_);
    EXPECT_THAT(series_, SizeIs(2));
    // The branch sorts first.
    return JudgeAll(series_, TriageBook({}, 0)).at(0);
  };
  Measure(30, 100);
  Measure(1, 100, crash(20));
  EXPECT_EQ(judge().standing, Verdict::kFailed) << "measured after main";
  Measure(1, 100, [](proto::Run& run) {
    run.mutable_commit()->set_first_parent_position(19);
  });
  EXPECT_EQ(judge().standing, Verdict::kFailed) << "an earlier commit";
  Measure(1, 100);
  EXPECT_EQ(judge().standing, Verdict::kCannotTell);
  EXPECT_EQ(judge().why, "CRASHED; a later commit of main works");
  Measure(1, 100, crash(40));
  Measure(1, 100);
  EXPECT_EQ(judge().standing, Verdict::kFailed) << "the branch goes on";
  // Without positions the clock alone tells.
  for (proto::Run& run : runs_) {
    run.mutable_commit()->clear_first_parent_position();
  }
  EXPECT_EQ(judge().standing, Verdict::kCannotTell);
}

TEST_F(JudgeTest, OneRunFarOffIsWeighedDown) {
  Measure(20, 100);
  Measure(1, 150);
  Measure(5, 100);
  const Judgement judgement = Judge();
  ASSERT_THAT(judgement.weights, SizeIs(26));
  EXPECT_THAT(judgement.weights[20], Lt(.05));
  EXPECT_EQ(judgement.baseline_begin, 0);
  double others = 0;
  for (const double weight : judgement.weights) others += weight;
  EXPECT_GT(others - judgement.weights[20], 24);
}

TEST_F(JudgeTest, HigherMayBeBetter) {
  const auto as_rate = [](proto::Run& run) {
    proto::Measurement* measurement =
        run.mutable_results(0)->mutable_measurements(0);
    proto::MetricSamples* samples = measurement->add_metrics();
    samples->set_metric("rate");
    samples->set_unit("items/s");
    samples->set_direction(proto::HIGHER_IS_BETTER);
    samples->add_values(1e3 / measurement->median_ns());
  };
  Measure(40, 100, as_rate);
  Measure(20, 125, as_rate);
  series_ = BuildSeries(runs_);
  ASSERT_THAT(series_, SizeIs(2));
  const TriageBook book(records_, 0);
  for (const Judgement& judgement : JudgeAll(series_, book)) {
    EXPECT_EQ(judgement.standing, Verdict::kSlower);
    EXPECT_NEAR(judgement.changes[0].worse_by, .25, .02);
  }
}

TEST_F(JudgeTest, TooFewPointsSayHowManyThereAreAndWhatToUse) {
  Measure(1, 100);
  EXPECT_EQ(Judge().why, "1 of 20 points; use gate or bisect");
  Measure(8, 100);
  EXPECT_EQ(Judge().standing, Verdict::kCannotTell);
  EXPECT_EQ(Judge().why, "9 of 20 points; use gate or bisect");
  Measure(3, 100, [](proto::Run& run) {
    run.mutable_toolchain()->set_compiler("g++ 13");
  });
  EXPECT_EQ(Judge().why, "3 of 20 points of a new epoch; use gate or bisect");
}

TEST_F(JudgeTest, WhatTheNewestRunOfItsSuiteLacksIsMissing) {
  const auto judge = [&] {
    series_ = BuildSeries(runs_);
    JudgeOptions options;
    options.runs = &runs_;
    const auto judgements = JudgeAll(series_, TriageBook({}, 0), options);
    for (size_t i = 0; i < series_.size(); ++i) {
      if (series_[i].key.benchmark.operator_name() == "BM_x") {
        return judgements[i].standing;
      }
    }
    return Verdict::kNew;
  };
  const auto rename = [](proto::Run& run) {
    run.mutable_results(0)->mutable_key()->set_operator_name("BM_other");
  };
  Measure(30, 100);
  EXPECT_EQ(judge(), Verdict::kUnchanged);
  Measure(1, 100, [&](proto::Run& run) {
    rename(run);
    run.set_suite("another");
  });
  EXPECT_EQ(judge(), Verdict::kUnchanged) << "another suite";
  // An old commit that is measured today is not the newest.
  Measure(1, 100, [&](proto::Run& run) {
    rename(run);
    run.mutable_commit()->set_id("old");
    run.mutable_commit()->set_first_parent_position(3);
  });
  EXPECT_EQ(judge(), Verdict::kUnchanged);
  Measure(1, 100, rename);
  EXPECT_EQ(judge(), Verdict::kMissing);
}

// The gate calls the two sides so, too.
TEST_F(JudgeTest, AnotherVersionOrNameTakesThePlaceOfABenchmark) {
  const auto ended = [&](const std::function<void(proto::Run&)>& edit) {
    runs_.clear();
    Measure(30, 100);
    Measure(1, 100, edit);
    series_ = BuildSeries(runs_);
    JudgeOptions options;
    options.runs = &runs_;
    const auto judgements = JudgeAll(series_, TriageBook({}, 0), options);
    for (size_t i = 0; i < series_.size(); ++i) {
      if (series_[i].points.size() == 30) return judgements[i];
    }
    return Judgement();
  };
  const Judgement versioned = ended([](proto::Run& run) {
    run.mutable_results(0)->mutable_key()->set_version(2);
  });
  EXPECT_EQ(versioned.standing, Verdict::kNewVersion);
  EXPECT_EQ(versioned.why, "version 0 -> 2: not compared");
  const Judgement renamed = ended([](proto::Run& run) {
    run.mutable_results(0)->mutable_key()->set_operator_name("BM_xs");
  });
  EXPECT_EQ(renamed.standing, Verdict::kRenamed);
  EXPECT_EQ(renamed.why, "it may be called BM_xs now");
}

TEST_F(JudgeTest, TheEvidenceIsOfThePointsThatItNames) {
  Measure(40, 100);
  Measure(30, 130);
  const Judgement judgement = Judge();
  ASSERT_THAT(judgement.changes, SizeIs(1));
  const Change& change = judgement.changes[0];
  const Evidence evidence = EvidenceOf(change);
  for (const auto& [level, value] :
       {std::make_pair(evidence.before, change.change.level_before),
        std::make_pair(evidence.after, change.change.level_after)}) {
    std::vector<double> values;
    std::vector<std::string> run_ids;
    for (int i = level.begin; i < level.end; ++i) {
      values.push_back(*series_[0].points[i].value);
      run_ids.push_back(series_[0].points[i].runs->ids[0]);
    }
    EXPECT_EQ(Median(values), value);
    EXPECT_EQ(level.run_ids, run_ids);
  }
  EXPECT_EQ(evidence.before.end, 40);
  EXPECT_EQ(evidence.after.begin, 40);
  EXPECT_EQ(evidence.good->id(), CommitId(39));
  EXPECT_EQ(evidence.bad->id(), CommitId(40));
  EXPECT_EQ(SuspectsText(evidence), CommitId(40).substr(0, 12));
  EXPECT_THAT(NarrowingCommand(change, evidence), StartsWith("git show "));
  EXPECT_THAT(EvidenceText(change, evidence),
              AllOf(HasSubstr("BM_x time: 2"), HasSubstr("% slower ("),
                    HasSubstr(" up to " + CommitId(39).substr(0, 12))));
}

TEST_F(JudgeTest, SuspectsThatWereNotMeasuredAreNarrowedByACommand) {
  const auto every_third = [](proto::Run& run) {
    const int i = run.commit().first_parent_position();
    run.mutable_commit()->set_first_parent_position(3 * i);
  };
  Measure(40, 100, every_third);
  Measure(30, 130, every_third);
  const Judgement judgement = Judge();
  ASSERT_THAT(judgement.changes, SizeIs(1));
  const Evidence evidence = EvidenceOf(judgement.changes[0]);
  EXPECT_EQ(evidence.suspects, 3);
  EXPECT_THAT(
      NarrowingCommand(judgement.changes[0], evidence),
      HasSubstr(absl::StrCat("optrail bisect ", CommitId(39).substr(0, 12), " ",
                             CommitId(40).substr(0, 12))));
}

TEST_F(JudgeTest, TheTimeOfABenchmarkIsItsMainMetric) {
  Measure(3, 100, [](proto::Run& run) {
    proto::MetricSamples* cpu =
        run.mutable_results(0)->mutable_measurements(0)->add_metrics();
    cpu->set_metric("cpu_time");
    cpu->set_unit("ns");
    cpu->add_values(90);
    *run.add_results() = run.results(0);
    run.mutable_results(1)->mutable_key()->set_operator_name("BM_rate");
    proto::Measurement* rate = run.mutable_results(1)->mutable_measurements(0);
    rate->clear_median_ns();
  });
  series_ = BuildSeries(runs_);
  const std::vector<bool> main = MainSeries(series_);
  for (size_t i = 0; i < series_.size(); ++i) {
    const bool has_time = series_[i].key.benchmark.operator_name() == "BM_x";
    EXPECT_EQ(main[i], has_time == (series_[i].key.metric == "time"))
        << series_[i].text;
  }
}

}  // namespace
}  // namespace optrail::tracker
