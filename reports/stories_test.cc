// What happens to real projects, told from histories, and that all who are
// asked have one answer: `optrail changes`, the report, and the gate.

#include <unistd.h>

#include <cmath>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "reports/build_report_data.h"
#include "reports/overview.h"
#include "tracker/gate/gate.h"
#include "tracker/gate/gate_report.h"
#include "tracker/history/history.h"
#include "tracker/judge/changes_command.h"

namespace optrail::reports {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int64_t kDayNs = 24LL * 3600 * 1000000000;
constexpr int64_t kStartNs = 1767225600LL * 1000000000;
constexpr int kBenchmarks = 6, kProcesses = 5;

// A benchmark's time in logarithms beside its level.
using Effect = std::function<double(int benchmark, int process)>;

class Stories : public ::testing::Test {
 protected:
  Stories() {
    static int count = 0;
    common_.history =
        absl::StrCat(::testing::TempDir(), "/stories_", getpid(), "_", count++);
    common_.workspace = ::testing::TempDir();
    common_.format = OutputFormat::kJson;
  }

  tracker::History history() const {
    return *tracker::History::Open(common_.history);
  }

  static std::string CommitId(int day) {
    return absl::StrFormat("%012d%028d", day, 0);
  }

  // A run of main a day. `machine` is what calibration loops see as well.
  void Record(int days, const Effect& effect = nullptr, double machine = 0) {
    for (int i = 0; i < days; ++i) {
      proto::Run run;
      const int day = next_day_++;
      run.set_started_unix_ns(kStartNs + day * kDayNs);
      run.set_run_id(tracker::NewRecordId(run.started_unix_ns()));
      run.set_suite("smoke");
      run.mutable_hardware()->set_id("amd-epyc-zen4-2c");
      run.mutable_toolchain()->set_compiler(compiler_);
      run.mutable_commit()->set_id(CommitId(day));
      run.mutable_commit()->set_branch("main");
      run.mutable_commit()->set_first_parent_position(day);
      const double drift = machine + .004 * rng_.Gaussian();
      for (int j = 0; j < kBenchmarks; ++j) {
        proto::BenchmarkResult* result = run.add_results();
        result->mutable_key()->set_operator_name(names_[j]);
        result->set_outcome(proto::OK);
        const double level = drift + .003 * rng_.Gaussian();
        for (int p = 0; p < kProcesses; ++p) {
          proto::Measurement* process = result->add_measurements();
          process->set_median_ns(1000 *
                                 std::exp(level + .005 * rng_.Gaussian() +
                                          (effect ? effect(j, p) : 0)));
          if (!calibrated_) continue;
          for (const char* name : {"arithmetic", "l1", "l2", "l3", "memory"}) {
            proto::Calibration* loop =
                process->mutable_conditions()->add_calibrations();
            loop->set_loop(name);
            loop->set_time_ns(100 * std::exp(drift + .002 * rng_.Gaussian()));
          }
        }
      }
      const absl::Status appended = history().AppendRun(run);
      ASSERT_TRUE(appended.ok()) << appended;
    }
    common_.now_unix_ns = kStartNs + next_day_ * kDayNs;
  }

  static Effect Slower(int benchmark, double factor) {
    return [=](int j, int) { return j == benchmark ? std::log(factor) : 0; };
  }
  static Effect AllSlower(double factor) {
    return [=](int, int) { return std::log(factor); };
  }

  // `optrail changes`: its exit code, and its rows.
  int Changes() {
    tracker::ChangesCommand options;
    options.common = common_;
    std::ostringstream out;
    const absl::StatusOr<int> code = tracker::RunChanges(options, out);
    EXPECT_TRUE(code.ok()) << code.status();
    changes_ = nlohmann::json::parse(out.str());
    return code.value_or(-1);
  }

  // The series of a benchmark, as the page has it.
  SeriesView Reported(const std::string& name) {
    BuildOptions options;
    options.triage = history().LoadTriage()->records;
    options.now_unix_ns = common_.now_unix_ns;
    report_ = BuildReportData(history().LoadRuns()->runs, {}, options);
    for (const SeriesView& series : report_.series) {
      if (series.name == name) return series;
    }
    ADD_FAILURE() << "no series " << name;
    return {};
  }

  int Gate() {
    const auto policy = tracker::Policy::Parse("", "policy");
    const auto report = tracker::Gate(history(), *policy, {});
    EXPECT_TRUE(report.ok()) << report.status();
    gate_ = report.ok() ? tracker::GateText(*report) : "";
    return report.ok() ? report->exit_code : -1;
  }

  tracker::CommonOptions common_;
  Rng rng_{7};
  std::string compiler_ = "g++ 12.2.0";
  std::string names_[kBenchmarks] = {"BM_Sort",  "BM_Hash", "BM_Parse",
                                     "BM_Write", "BM_Copy", "BM_Encode"};
  bool calibrated_ = false;
  int next_day_ = 1;
  ReportData report_;
  nlohmann::json changes_;
  std::string gate_;
};

TEST_F(Stories, ACompilerUpgradeIsANewEpoch) {
  Record(30);
  compiler_ = "g++ 13.1.0";
  Record(1, AllSlower(1.08));
  EXPECT_EQ(Gate(), 3) << gate_;
  Record(24, AllSlower(1.08));
  EXPECT_EQ(Changes(), 0) << changes_.dump(1);
  ASSERT_EQ(changes_.size(), kBenchmarks);
  EXPECT_EQ(changes_[0]["state"], "new epoch");
  const SeriesView series = Reported("BM_Hash");
  EXPECT_EQ(series.verdict, Verdict::kUnchanged) << series.verdict_detail;
  ASSERT_EQ(series.of->epochs.size(), 2);
  EXPECT_EQ(series.points()[29].epoch, 0);
  EXPECT_EQ(series.points()[30].epoch, 1);
  EXPECT_EQ(Gate(), 0) << gate_;
}

TEST_F(Stories, ANoisyNeighbourForADayIsNoRegression) {
  Record(30);
  for (int hour = 0; hour < 4; ++hour) {
    Record(1, [&](int j, int) { return j < 3 ? .05 + .1 * hour : 0; });
  }
  Record(12);
  EXPECT_EQ(Changes(), 0) << changes_.dump(1);
  EXPECT_EQ(Reported("BM_Sort").verdict, Verdict::kUnchanged);
  EXPECT_NE(Gate(), 1) << gate_;
}

TEST_F(Stories, AFrequencyThatDropsForAllIsTheMachineWhereLoopsWereTimed) {
  calibrated_ = true;
  Record(30);
  Record(12, nullptr, std::log(1.1));
  EXPECT_EQ(Changes(), 0) << changes_.dump(1);
  ASSERT_EQ(changes_.size(), kBenchmarks);
  EXPECT_EQ(changes_[0]["state"], "the machine");
  EXPECT_THAT(std::string(changes_[0]["why"]), HasSubstr("% more time"));
  const SeriesView series = Reported("BM_Parse");
  EXPECT_EQ(series.verdict, Verdict::kUnchanged) << series.verdict_detail;
  EXPECT_THAT(series.verdict_detail, HasSubstr("the machine: "));
  EXPECT_NE(Gate(), 1) << gate_;
}

TEST_F(Stories, AMachineThatIsSlowerForAFewPointsIsMarkedProvisional) {
  calibrated_ = true;
  Record(30);
  int provisional = 0;
  for (int day = 0; day < 12; ++day) {
    Record(1, nullptr, std::log(1.1));
    Changes();
    for (const auto& change : changes_) {
      const bool is_provisional = change["provisional"] == 1;
      EXPECT_EQ(is_provisional,
                absl::StartsWith(std::string(change["state"]), "provisional, "))
          << change.dump();
      provisional +=
          is_provisional && change["state"] == "provisional, the machine";
    }
  }
  EXPECT_GT(provisional, 0);
  for (const auto& change : changes_) EXPECT_EQ(change["provisional"], 0);
}

// One slow run at the end: the gate compares it, a verdict takes more.
TEST_F(Stories, WhatTheGateFailsIsMaybeSlowerElsewhere) {
  Record(40);
  Record(1, Slower(1, 1.1));
  EXPECT_EQ(Gate(), 1) << gate_;
  EXPECT_EQ(Reported("BM_Hash").verdict, Verdict::kMaybeSlower);
  EXPECT_THAT(Reported("BM_Hash").verdict_detail,
              HasSubstr("gate judges the newest run"));
  EXPECT_EQ(Changes(), 0);
  ASSERT_EQ(changes_.size(), 1) << changes_.dump(1);
  EXPECT_EQ(changes_[0]["state"], "provisional, new");
  EXPECT_EQ(changes_[0]["points_since"], 1);
  EXPECT_GT(changes_[0]["points_to_answer"], 0);
}

TEST_F(Stories, WhatIsSlowerThanItsMachineIsARegression) {
  calibrated_ = true;
  Record(30);
  Record(12, Slower(2, 1.2), std::log(1.1));
  EXPECT_EQ(Changes(), 1) << changes_.dump(1);
  EXPECT_EQ(changes_[0]["benchmark"], "BM_Parse");
  EXPECT_EQ(changes_[0]["state"], "new");
  EXPECT_EQ(Reported("BM_Parse").verdict, Verdict::kSlower);
  EXPECT_EQ(Reported("BM_Sort").verdict, Verdict::kUnchanged);
}

TEST_F(Stories, AFrequencyThatDropsForAllIsAlarmingWhereNothingElseTells) {
  Record(30);
  Record(12, AllSlower(1.1));
  EXPECT_EQ(Changes(), 1) << changes_.dump(1);
  EXPECT_EQ(Reported("BM_Parse").verdict, Verdict::kSlower);
}

TEST_F(Stories, ABenchmarkThatBecameBimodalIsNotUnchanged) {
  Record(30);
  Record(1, [](int j, int p) { return j == 1 && p % 2 == 0 ? .3 : 0; });
  EXPECT_NE(Gate(), 0) << gate_;
  // Every process is in either mode, by chance.
  Record(24, [&](int j, int) {
    return j == 1 && rng_.UniformReal() < .5 ? .3 : 0;
  });
  Changes();
  EXPECT_NE(Reported("BM_Hash").verdict, Verdict::kUnchanged);
  EXPECT_EQ(Reported("BM_Copy").verdict, Verdict::kUnchanged);
}

TEST_F(Stories, CreepOfOnePercentAWeekIsSaid) {
  for (int day = 0; day < 70; ++day) {
    Record(1, Slower(0, std::pow(1.01, day / 7.)));
  }
  Changes();
  ASSERT_THAT(changes_, Not(IsEmpty()));
  EXPECT_EQ(changes_[0]["benchmark"], "BM_Sort");
  EXPECT_EQ(changes_.size(), 1) << changes_.dump(1);
  const SeriesView series = Reported("BM_Sort");
  EXPECT_THAT(series.verdict, AnyOf(Verdict::kMaybeSlower, Verdict::kSlower));
  // One run of each end is too little to compare; all of the points are not.
  const std::string command = changes_[0]["narrow_with"];
  EXPECT_EQ(command, absl::StrCat("optrail show '", series.of->text, "'"));
  EXPECT_EQ(Reported("BM_Hash").verdict, Verdict::kUnchanged);
  const std::vector<AttentionRow> rows = Summarize(report_).attention;
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0].commands.at(0).what, "show");
  EXPECT_EQ(rows[0].commands.at(0).text, command);
  for (const NextCommand& next : rows[0].commands) {
    EXPECT_NE(next.what, "compare");
  }
}

TEST_F(Stories, AnImprovementRevertedIsARegression) {
  Record(30);
  Record(25, Slower(3, .85));
  EXPECT_EQ(Changes(), 0) << changes_.dump(1);
  EXPECT_EQ(Reported("BM_Write").verdict, Verdict::kFaster);
  Record(1);
  EXPECT_EQ(Gate(), 1) << gate_;
  Record(7);
  EXPECT_EQ(Changes(), 1) << changes_.dump(1);
  EXPECT_EQ(changes_[0]["benchmark"], "BM_Write");
  EXPECT_EQ(changes_[0]["first_commit_after"], CommitId(56).substr(0, 12));
  EXPECT_EQ(Reported("BM_Write").verdict, Verdict::kSlower);
}

TEST_F(Stories, ARegressionAcknowledgedIsTheNormFromThereOn) {
  Record(30);
  Record(1, Slower(4, 1.2));
  EXPECT_EQ(Gate(), 1) << gate_;
  Record(24, Slower(4, 1.2));
  EXPECT_EQ(Changes(), 1) << changes_.dump(1);
  proto::TriageRecord record;
  record.set_kind(proto::ACKNOWLEDGE);
  record.set_pattern("BM_Copy");
  record.mutable_commit()->set_id(CommitId(31));
  record.set_text("checks its input now");
  record.set_created_unix_ns(common_.now_unix_ns);
  record.set_record_id(tracker::NewRecordId(record.created_unix_ns()));
  ASSERT_TRUE(history().AppendTriage(record).ok());

  EXPECT_EQ(Changes(), 0) << changes_.dump(1);
  EXPECT_EQ(changes_[0]["state"], "acknowledged");
  const SeriesView series = Reported("BM_Copy");
  EXPECT_EQ(series.verdict, Verdict::kAcknowledged);
  EXPECT_THAT(series.verdict_detail, HasSubstr("checks its input now"));
  EXPECT_EQ(Gate(), 0) << gate_;
  // And the next one is found against it.
  Record(1, Slower(4, 1.2 * 1.2));
  EXPECT_EQ(Gate(), 1) << gate_;
  Record(6, Slower(4, 1.2 * 1.2));
  EXPECT_EQ(Changes(), 1) << changes_.dump(1);
}

TEST_F(Stories, ARegressionThatNobodyAnsweredStaysOneForThePageAndChanges) {
  Record(30);
  Record(60, Slower(2, 1.1));
  EXPECT_EQ(Changes(), 1) << changes_.dump(1);
  EXPECT_EQ(Reported("BM_Parse").verdict, Verdict::kSlower);
  // Half of it was won back, which makes it no better than it was.
  Record(40, Slower(2, 1.05));
  EXPECT_EQ(Changes(), 1) << changes_.dump(1);
  EXPECT_EQ(Reported("BM_Parse").verdict, Verdict::kSlower);
  Record(40);
  EXPECT_EQ(Changes(), 0) << changes_.dump(1);
  EXPECT_NE(Reported("BM_Parse").verdict, Verdict::kSlower);
}

TEST_F(Stories, OneThatWasRenamedAndIsSlowerIsFoundUnderItsNewName) {
  Record(30);
  names_[5] = "BM_EncodeText";
  Record(1, Slower(5, 1.15));
  EXPECT_EQ(Gate(), 1) << gate_;
  EXPECT_THAT(gate_, HasSubstr("BM_Encode"));
  Record(5, Slower(5, 1.15));
  EXPECT_EQ(Changes(), 1) << changes_.dump(1);
  EXPECT_EQ(changes_[0]["benchmark"], "BM_EncodeText");
  EXPECT_EQ(changes_[0]["state"], "renamed, new");
  EXPECT_EQ(changes_[0]["why"], "called BM_Encode before");
  EXPECT_EQ(changes_[0]["last_commit_before"], CommitId(30).substr(0, 12));
  EXPECT_EQ(Reported("BM_EncodeText").verdict, Verdict::kSlower);
  EXPECT_THAT(Reported("BM_Encode").verdict_detail,
              HasSubstr("may be called BM_EncodeText now"));
}

TEST_F(Stories, OneThatWasOnlyRenamedIsNoRegression) {
  Record(30);
  names_[5] = "BM_EncodeText";
  Record(6);
  EXPECT_EQ(Changes(), 0) << changes_.dump(1);
  EXPECT_EQ(Reported("BM_EncodeText").verdict, Verdict::kCannotTell);
}

}  // namespace
}  // namespace optrail::reports
