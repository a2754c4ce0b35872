// What the gate promises, on runs that were recorded: in the order of time
// only, and with room for chance. gate_evaluation prints the figures.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/gate/evaluation/planted.h"
#include "tracker/gate/evaluation/recorded_set.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;

constexpr size_t kFewestRuns = 5;

std::vector<proto::Run> RunsOf(const std::string& name) {
  const auto set = ReadRecordedSet(
      absl::StrCat("tracker/gate/evaluation/runs_", name, ".tsv.xz"));
  EXPECT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->runs.size(), 30);
  return set->runs;
}

struct Counts {
  int gates = 0, red = 0, green = 0, found = 0;
};

// Each run against those before it, and with 10% planted in one benchmark.
Counts Gates(const std::vector<proto::Run>& runs) {
  Counts counts;
  for (size_t last = kFewestRuns; last < runs.size(); ++last) {
    std::vector<proto::Run> past(runs.begin(), runs.begin() + last + 1);
    const int code = GateLast(Numbered(past), 1, 1).exit_code;
    ++counts.gates;
    counts.red += code == 1;
    counts.green += code == 0;
    const int which = static_cast<int>(last) % past[0].results_size();
    past.back() = Slowed(past.back(), which, 1.1);
    counts.found += RowOf(GateLast(Numbered(past), 1, 1),
                          past[0].results(which).key().operator_name())
                        .verdict == Verdict::kSlower;
  }
  return counts;
}

TEST(RecordedRuns, CalmOnesAreMostlyGreenAndTellTenPercent) {
  const Counts counts = Gates(RunsOf("calm_2c"));
  EXPECT_LE(counts.red, 1);
  EXPECT_GE(counts.green, counts.gates / 3);
  EXPECT_GE(counts.found, 3 * counts.gates / 4);
}

TEST(RecordedRuns, ALoadThatRisesMakesThemUnsureAndNotRed) {
  const Counts counts = Gates(RunsOf("rising_2c"));
  EXPECT_EQ(counts.red, 0);
  EXPECT_GE(counts.green, counts.gates / 3);
  EXPECT_GE(counts.found, 3 * counts.gates / 4);
}

TEST(RecordedRuns, ACrowdedMachineIsHardlyEverRed) {
  EXPECT_LE(Gates(RunsOf("crowded_2c")).red, 1);
}

// With calibration between samples, and processes on slow cores measured again.
TEST(RecordedRuns, CalmCoresLeaveLittleUnsure) {
  for (const char* name : {"quiet_4c", "busy_4c", "pauses_4c", "load_4c",
                           "still_4c", "compilers_4c", "crowd_4c"}) {
    const Counts counts = Gates(RunsOf(name));
    EXPECT_LE(counts.red, 1) << name;
    EXPECT_GE(counts.green, counts.gates / 2) << name;
    EXPECT_GE(counts.found, 17 * counts.gates / 20) << name;
  }
}

// What it says of itself: that more processes tell.
TEST(RecordedRuns, MeasuredAgainTheyAreGreenAndTellFivePercent) {
  int gates = 0, green = 0, red = 0, found = 0;
  for (const char* name : {"quiet_4c", "busy_4c", "pauses_4c", "load_4c",
                           "still_4c", "compilers_4c", "crowd_4c"}) {
    const std::vector<proto::Run> runs = RunsOf(name);
    for (size_t last = kFewestRuns; last < runs.size(); last += 2) {
      const int which = static_cast<int>(last / 2) % runs[0].results_size();
      const int code = GateAgain(runs, last, which, 1).exit_code;
      ++gates;
      green += code == 0;
      red += code == 1;
      found += RowOf(GateAgain(runs, last, which, 1.05),
                     runs[0].results(which).key().operator_name())
                   .verdict == Verdict::kSlower;
    }
  }
  EXPECT_LE(red, 3);
  EXPECT_GE(green, 9 * gates / 10);
  EXPECT_GE(found, 9 * gates / 10);
}

// Four processes of ten beside a neighbour on their core, none measured again.
TEST(RecordedRuns, NeighboursOnTheCoreMakeThemUnsureAndNotRed) {
  const Counts counts = Gates(RunsOf("neighbours_4c"));
  EXPECT_LE(counts.red, 1);
  EXPECT_GE(counts.green, counts.gates / 4);
  EXPECT_GE(counts.found, 17 * counts.gates / 20);
}

// Four recorders at a time among builds that had priority over them.
TEST(RecordedRuns, EightProgramsACoreMakeThemUnsure) {
  const Counts counts = Gates(RunsOf("shared_4c"));
  EXPECT_LE(counts.red, 2);
  EXPECT_GE(counts.found, 3 * counts.gates / 5);
}

// As ci/gate.sh does it: ten rounds, and then what is not clear.
TEST(RecordedRuns, PullRequestsAreGreenAndTellFivePercent) {
  for (const char* name : {"load_4c", "builds_4c"}) {
    const auto set = ReadRecordedSet(
        absl::StrCat("tracker/gate/evaluation/rounds_", name, ".tsv.xz"));
    ASSERT_TRUE(set.ok()) << set.status();
    const std::vector<proto::Run>& runs = set->runs;
    int gates = 0, green = 0, found = 0;
    for (int at = 0; 2 * at < static_cast<int>(runs.size()); at += 10) {
      const int which = at / 10 % runs[0].results_size();
      ++gates;
      const PullRequest same = GatePullRequest(runs, at, 10, which, 1);
      EXPECT_NE(same.last.exit_code, 1) << name << " " << at;
      EXPECT_LT(same.rounds, 25) << name << " " << at;
      green += same.last.exit_code == 0;
      found += RowOf(GatePullRequest(runs, at, 10, which, 1.05).last,
                     runs[0].results(which).key().operator_name())
                   .verdict == Verdict::kSlower;
    }
    EXPECT_GE(green, gates - 1) << name;
    EXPECT_GE(found, gates - 1) << name;
  }
}

TEST(RecordedSets, AWrongOneIsRefusedByLine) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/set.tsv");
  const auto status = [&](const std::string& text) {
    FILE* file = fopen(path.c_str(), "w");
    fputs(text.c_str(), file);
    fclose(file);
    return std::string(ReadRecordedSet(path).status().message());
  };
  EXPECT_EQ(status("# a comment\nadd\t100 101\t102\n"), "");
  EXPECT_THAT(status("add\t100\nmul\t1o1\n"),
              HasSubstr(":2: '1o1', expected a positive number"));
  EXPECT_THAT(status("add\t100/-1\n"), HasSubstr(":1: '-1'"));
  EXPECT_THAT(status("add\t100/99@1,2,3\n"), HasSubstr("expected 6 numbers"));
  EXPECT_THAT(status("add\t100/99@1,2,3,4,5,1.5\n"),
              HasSubstr("expected a share of samples below 1"));
}

}  // namespace
}  // namespace optrail::tracker
