#include "tracker/history/retention.h"

#include <map>
#include <set>

#include "base/testing/fault_injecting_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/history/evaluation/generate_history.h"
#include "tracker/series/series.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

GenerateOptions Options() {
  GenerateOptions options;
  options.benchmarks = 2;
  options.hardware = 2;
  options.commits = 10;
  options.processes = 2;
  options.samples = 5;
  return options;
}

RetentionPolicy KeepFewer() {
  RetentionPolicy policy;
  policy.keep_runs = 3;
  policy.keep_days = 0;
  policy.keep_every = 2;
  return policy;
}

// After all runs of Options().
constexpr int64_t kNow = 1'800'000'000LL * 1'000'000'000;

std::map<std::string, std::string> AllRuns(const History& history) {
  std::map<std::string, std::string> runs;
  const LoadedRuns loaded = *history.LoadRuns({}, 1);
  EXPECT_THAT(loaded.bad_files, IsEmpty());
  for (const proto::Run& run : loaded.runs) {
    runs[run.run_id()] = run.SerializeAsString();
  }
  return runs;
}

TEST(Retention, KeepsTheNewestWholeAndEveryKthOfTheOthersAsMedians) {
  FaultInjectingFileSystem fs;
  const History history = *History::Open("/h", &fs);
  ASSERT_TRUE(GenerateHistory(Options(), history).ok());
  const auto before = AllRuns(history);
  const RetentionPlan plan = *PlanRetention(history, KeepFewer(), kNow);
  EXPECT_EQ(plan.kept_whole, 6);     // positions 8, 9, 10 on two machines
  EXPECT_EQ(plan.thin.size(), 6);    // 2, 4, 6
  EXPECT_EQ(plan.remove.size(), 8);  // 1, 3, 5, 7
  EXPECT_LT(plan.bytes_after, plan.bytes_before / 2);
  EXPECT_EQ(AllRuns(history), before) << "a plan changes nothing";

  ASSERT_TRUE(ApplyRetention(history, plan, kNow).ok());
  EXPECT_EQ(AllRuns(history).size(), 12);
  for (const std::string& id : plan.thin) {
    const proto::Run run = *history.ReadRun(id);
    EXPECT_EQ(run.results(0).measurements(0).sample_ns_size(), 0);
    EXPECT_TRUE(run.results(0).measurements(0).has_median_ns());
  }
  const RetentionPlan again = *PlanRetention(history, KeepFewer(), kNow);
  EXPECT_THAT(again.thin, IsEmpty());
  EXPECT_THAT(again.remove, IsEmpty());
  EXPECT_EQ(again.thinned_before, 6);
}

TEST(Retention, KeepsRecentDaysAndPinnedCommitsWhole) {
  FaultInjectingFileSystem fs;
  const History history = *History::Open("/h", &fs);
  ASSERT_TRUE(GenerateHistory(Options(), history).ok());
  RetentionPolicy policy = KeepFewer();
  policy.keep_days = 1000;
  EXPECT_EQ(PlanRetention(history, policy, kNow)->kept_whole, 20);
  policy = KeepFewer();
  policy.keep_commits = {
      history.ListRuns()->runs.front().header.commit().id().substr(0, 12)};
  EXPECT_EQ(PlanRetention(history, policy, kNow)->kept_whole, 8);
}

TEST(Retention, RefusesPoliciesThatMakeNoSense) {
  RetentionPolicy policy;
  policy.keep_every = 0;
  EXPECT_THAT(std::string(ValidateRetention(policy).message()),
              HasSubstr("--keep_every=0: expected at least 1"));
  policy = {};
  policy.keep_runs = -1;
  EXPECT_FALSE(ValidateRetention(policy).ok());
  policy = {};
  policy.keep_commits = {""};
  EXPECT_FALSE(ValidateRetention(policy).ok());
}

TEST(Retention, ThinningChangesNoValueOfAnySeries) {
  GenerateOptions options = Options();
  options.oddities = true;
  std::vector<proto::Run> whole, thinned;
  ASSERT_TRUE(GenerateRuns(options, [&](proto::Run run) {
                whole.push_back(run);
                thinned.push_back(std::move(run));
                ThinRun(&thinned.back());
                EXPECT_FALSE(ThinRun(&thinned.back()));
                return absl::OkStatus();
              }).ok());
  const std::vector<Series> a = BuildSeries(whole), b = BuildSeries(thinned);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].text, b[i].text);
    ASSERT_EQ(a[i].points.size(), b[i].points.size());
    for (size_t p = 0; p < a[i].points.size(); ++p) {
      EXPECT_EQ(a[i].points[p].value, b[i].points[p].value);
      EXPECT_EQ(a[i].points[p].processes.size(),
                b[i].points[p].processes.size());
    }
  }
}

TEST(Retention, AMergeDoesNotBringBackWhatWasTakenAway) {
  FaultInjectingFileSystem fs;
  const History history = *History::Open("/h", &fs);
  const History copy = *History::Open("/copy", &fs);
  ASSERT_TRUE(GenerateHistory(Options(), history).ok());
  ASSERT_TRUE(copy.MergeFrom(history).ok());
  const RetentionPlan plan = *PlanRetention(history, KeepFewer(), kNow);
  ASSERT_TRUE(ApplyRetention(history, plan, kNow).ok());
  const auto kept = AllRuns(history);

  const auto merged = history.MergeFrom(copy);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->copied, 0);
  EXPECT_EQ(merged->buried, 14);
  EXPECT_THAT(merged->bad_files, IsEmpty());
  EXPECT_EQ(AllRuns(history), kept);

  // A third history learns of it through the tombstones.
  const History third = *History::Open("/third", &fs);
  ASSERT_TRUE(third.MergeFrom(history).ok());
  ASSERT_TRUE(third.MergeFrom(copy).ok());
  EXPECT_EQ(AllRuns(third), kept);

  // A merge takes nothing away, and brings what would only if it is asked to.
  const auto unasked = copy.MergeFrom(history);
  ASSERT_EQ(unasked->held_back.size(), 1);
  EXPECT_EQ(unasked->held_back[0].removes, plan.remove.size());
  EXPECT_EQ(unasked->held_back[0].thins, plan.thin.size());
  EXPECT_THAT(copy.LoadTombstones()->by_run, IsEmpty());
  ASSERT_TRUE(copy.MergeFrom(history, {/*accept_removals=*/true}).ok());
  EXPECT_EQ(AllRuns(copy).size(), 20);
  // The policy of the copy decides.
  RetentionPolicy everything;
  everything.keep_days = 100000;
  EXPECT_EQ(PlanRetention(copy, everything, kNow)->kept_whole, 20);
  const RetentionPlan there = *PlanRetention(copy, KeepFewer(), kNow);
  EXPECT_EQ(there.remove, plan.remove);
  EXPECT_EQ(there.thin, plan.thin);
  ASSERT_TRUE(ApplyRetention(copy, there, kNow).ok());
  EXPECT_EQ(AllRuns(copy), kept);
}

// The power is lost at every single write: what the plan keeps is as it was,
// what it changes is in one of its two states, and the next pass completes it.
TEST(RetentionFaults, APowerLossLosesNothingThatThePlanKeeps) {
  int losses = 0;
  GenerateOptions options = Options();
  options.hardware = 1;
  options.commits = 7;
  for (const PowerLoss loss :
       {PowerLoss::kDropUnsynced, PowerLoss::kKeepNames, PowerLoss::kTorn}) {
    for (int64_t i = 0;; ++i) {
      FaultInjectingFileSystem fs(29 + i);
      const History history = *History::Open("/h", &fs);
      const History copy = *History::Open("/copy", &fs);
      ASSERT_TRUE(GenerateHistory(options, history).ok());
      ASSERT_TRUE(copy.MergeFrom(history).ok());
      const auto before = AllRuns(history);
      const RetentionPlan plan = *PlanRetention(history, KeepFewer(), kNow);
      const std::set<std::string> thin(plan.thin.begin(), plan.thin.end());
      const std::set<std::string> remove(plan.remove.begin(),
                                         plan.remove.end());
      ASSERT_EQ(thin.size(), 2);
      ASSERT_EQ(remove.size(), 2);
      fs.LosePowerAt(fs.operations() + i);
      if (ApplyRetention(history, plan, kNow).ok()) break;
      ++losses;
      fs.Restart(loss);

      EXPECT_THAT(history.Verify(1)->bad_files, IsEmpty());
      const auto after = AllRuns(history);
      for (const auto& [id, bytes] : before) {
        if (remove.count(id) > 0) continue;
        ASSERT_EQ(after.count(id), 1) << id << " at operation " << i;
        if (thin.count(id) > 0) continue;
        EXPECT_EQ(after.at(id), bytes);
      }
      // Nothing may be gone without its tombstone.
      ASSERT_TRUE(history.MergeFrom(copy).ok());
      EXPECT_EQ(AllRuns(history), after) << "at operation " << i;

      const RetentionPlan rest = *PlanRetention(history, KeepFewer(), kNow);
      ASSERT_TRUE(ApplyRetention(history, rest, kNow).ok());
      EXPECT_EQ(AllRuns(history).size(), before.size() - remove.size());
      for (const std::string& id : plan.thin) {
        proto::Run run = *history.ReadRun(id);
        EXPECT_FALSE(ThinRun(&run));
      }
    }
  }
  EXPECT_GT(losses, 30);
}

}  // namespace
}  // namespace optrail::tracker
