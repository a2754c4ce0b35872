// Search is judged as it was: scores of an earlier version on two recorded
// spaces, tuning/testdata/stored_*. A strategy may get better, and then more
// than two spaces show it (docs/method/search.md); it does not get worse
// unnoticed.

#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/file/file.h"
#include "gtest/gtest.h"
#include "tuning/replay/replay_command.h"

namespace optrail::tuning {
namespace {

using Scores = std::map<std::string, std::vector<double>>;

// Strategy -> fractions by space and budget.
Scores Read(const std::string& csv) {
  Scores scores;
  bool header = true;
  for (absl::string_view line : absl::StrSplit(csv, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    double fraction = 0;
    if (!header && absl::SimpleAtod(cells[3], &fraction)) {
      scores[cells[1]].push_back(fraction);
    }
    header = false;
  }
  return scores;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

TEST(StoredScoresTest, NoStrategySearchesWorse) {
  const Scores before =
      Read(*ReadFile("tuning/testdata/stored_2026_11/replay_scores.csv"));
  ASSERT_EQ(before.size(), 12);
  const std::string data = "tuning/replay/recordings/data";
  ReplayCommand command;
  command.spaces = {JoinPath(data, "nbody_16384.json.xz"),
                    JoinPath(data, "histogram_skewed_16M.json.xz")};
  command.strategies = {"all"};
  command.budgets = {20, 50};
  command.seeds = 3;
  command.format = "csv";
  const auto rows = RunReplay(command);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const Scores now = Read(*FormatReplay(command, *rows));
  for (const auto& [strategy, fractions] : before) {
    const auto found = now.find(strategy);
    ASSERT_NE(found, now.end()) << strategy << " is gone";
    ASSERT_EQ(found->second.size(), fractions.size()) << strategy;
    // Models in single precision differ in the last bits between processors.
    EXPECT_GE(Mean(found->second), Mean(fractions) - 0.01) << strategy;
  }
  // Neither a formula nor the order of draws may change: the yardstick.
  for (size_t i = 0; i < before.at("random_exact").size(); ++i) {
    EXPECT_EQ(now.at("random_exact")[i], before.at("random_exact")[i]);
    EXPECT_EQ(now.at("random")[i], before.at("random")[i]);
  }
}

}  // namespace
}  // namespace optrail::tuning
