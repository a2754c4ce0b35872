#ifndef OPTRAIL_TRACKER_JUDGE_JUDGE_TEST_FIXTURE_H_
#define OPTRAIL_TRACKER_JUDGE_JUDGE_TEST_FIXTURE_H_

// JudgeTest makes runs of one benchmark, and records of triage, and judges the
// series that they are.
//
//   Measure(40, 100);  // 40 commits of 100 ns
//   Measure(20, 110);
//   EXPECT_EQ(Judge().standing, Verdict::kSlower);

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "tracker/judge/judge.h"
#include "tracker/series/series.h"

namespace optrail::tracker {

inline std::string CommitId(int i) { return absl::StrFormat("%040x", i + 1); }

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

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_JUDGE_JUDGE_TEST_FIXTURE_H_
