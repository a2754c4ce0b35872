#include "tuning/replay/replay_command.h"

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

using ::testing::HasSubstr;

// A 6 x 8 space with a bowl and a ridge of failures; repeats 10% around.
std::string WriteSpace(const std::string& name, double shift) {
  std::string text =
      R"({"tune_params_keys": ["x", "y"], "tune_params": {}, "cache": {)";
  for (int x = 0; x < 6; ++x) {
    for (int y = 0; y < 8; ++y) {
      const double time =
          1 + (x - 2 - shift) * (x - 2 - shift) + 0.5 * (y - 4) * (y - 4);
      absl::StrAppend(&text, x + y > 0 ? "," : "", "\"", x, ",", y,
                      "\": {\"x\": ", x, ", \"y\": ", y, ", \"time\": ");
      if (x + y == 11) {
        absl::StrAppend(&text, "\"RuntimeFailedConfig\"}");
      } else {
        absl::StrAppend(&text, time, ", \"times\": [", 0.9 * time, ",",
                        1.1 * time, "], \"compile_time\": ", 10 + x * y, "}");
      }
    }
  }
  text += "}}";
  const std::string path = ::testing::TempDir() + "/" + name + ".json";
  std::ofstream(path) << text;
  return path;
}

ReplayCommand SmallCommand() {
  ReplayCommand command;
  command.spaces = {WriteSpace("bowl_A", 0)};
  command.strategies = {"random", "bayes_opt"};
  command.budgets = {5, 48};
  command.seeds = 3;
  command.jobs = 2;
  return command;
}

TEST(ReplayCommandTest, PrintsTheDocumentedColumns) {
  ReplayCommand command = SmallCommand();
  command.format = "csv";
  const auto rows = RunReplay(command);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const std::vector<std::string> lines =
      absl::StrSplit(*FormatReplay(command, *rows), '\n');
  EXPECT_EQ(lines[0],
            "space,strategy,budget,mean_fraction,stderr,ev5,seeds,"
            "cpu_ms_per_run");
  EXPECT_THAT(lines[1], HasSubstr("bowl_A,random_exact,5,0."));
  // Exact, random, bayes_opt with two budgets each; the header; a last newline.
  EXPECT_EQ(lines.size(), 8u);
}

TEST(ReplayCommandTest, FindsTheOptimumWithAsManyTrialsAsConfigs) {
  const auto rows = RunReplay(SmallCommand());
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (const ReplayRow& row : *rows) {
    if (row.budget == 48) {
      EXPECT_NEAR(row.mean_fraction, 1, 1e-12);
    }
    EXPECT_GE(row.ev5, 1);
    EXPECT_LE(row.ev5, 48);
  }
}

TEST(ReplayCommandTest, ResultsDoNotDependOnTheNumberOfThreads) {
  ReplayCommand command = SmallCommand();
  command.jobs = 1;
  const auto one = RunReplay(command);
  command.jobs = 4;
  const auto four = RunReplay(command);
  ASSERT_TRUE(one.ok() && four.ok());
  for (size_t i = 0; i < one->size(); ++i) {
    EXPECT_EQ((*one)[i].mean_fraction, (*four)[i].mean_fraction);
    EXPECT_EQ((*one)[i].ev5, (*four)[i].ev5);
  }
}

TEST(ReplayCommandTest, NoiseModeScoresTheDeclaredWinnersTrueMean) {
  ReplayCommand command = SmallCommand();
  command.noise = true;
  command.format = "csv";
  const auto rows = RunReplay(command);
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (const ReplayRow& row : *rows) {
    EXPECT_LE(row.mean_fraction, 1);
    EXPECT_GE(row.winner_loss, 0);
  }
  EXPECT_THAT(*FormatReplay(command, *rows), HasSubstr(",winner_loss\n"));
}

TEST(ReplayCommandTest, NoiseModeVerifiesBeforeItDeclares) {
  // One steady config, and twenty that look twice as fast in one of ten
  // readings, not all in the same, but take twice as long in truth.
  std::string text =
      R"({"tune_params_keys": ["x"], "cache": {"0": {"x": 0, "time": 1,
          "times": [1]})";
  for (int x = 1; x <= 20; ++x) {
    std::vector<double> times(10, 2.1667);
    times[x % 10] = 0.5;
    absl::StrAppend(&text, ",\"", x, "\": {\"x\": ", x,
                    ", \"time\": 2, \"times\": [", absl::StrJoin(times, ","),
                    "]}");
  }
  ReplayCommand command;
  command.spaces = {::testing::TempDir() + "/liars.json"};
  std::ofstream(command.spaces[0]) << text << "}}";
  command.strategies = {"random"};
  command.budgets = {800};  // of which 80 readings of 16 finalists
  command.seeds = 20;
  command.noise = true;
  const auto rows = RunReplay(command);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_LT(rows->back().winner_loss, 0.1);
}

TEST(ReplayCommandTest, WhatDisturbsAllReadingsOfARoundDecidesNothing) {
  // Every other reading takes three times as long, far more than the 2% that
  // separate one config from the next.
  std::string text = R"({"tune_params_keys": ["x"], "cache": {)";
  for (int x = 0; x < 20; ++x) {
    const double time = 1 + 0.02 * x;
    absl::StrAppend(&text, x > 0 ? "," : "", "\"", x, "\": {\"x\": ", x,
                    ", \"time\": ", 2 * time, ", \"times\": [", time, ",",
                    3 * time, "]}");
  }
  ReplayCommand command;
  command.spaces = {::testing::TempDir() + "/cold.json"};
  std::ofstream(command.spaces[0]) << text << "}}";
  command.strategies = {"random"};
  command.budgets = {400};
  command.seeds = 10;
  command.noise = true;
  const auto rows = RunReplay(command);
  ASSERT_TRUE(rows.ok()) << rows.status();
  // The best of all is found whenever its one reading let it be a finalist.
  EXPECT_LT(rows->back().winner_loss, 0.03);
}

TEST(ReplayCommandTest, TransferLeavesTheSpaceItselfOut) {
  ReplayCommand command = SmallCommand();
  command.strategies = {"bayes_opt"};
  command.budgets = {4};
  // Only itself: as without transfer.
  const auto without = RunReplay(command);
  command.transfer = command.spaces;
  const auto with_itself = RunReplay(command);
  ASSERT_TRUE(without.ok() && with_itself.ok());
  EXPECT_EQ(without->back().mean_fraction, with_itself->back().mean_fraction);
  // Another device with the same optimum gives it away at the first trial.
  command.transfer = {WriteSpace("bowl_B", 0.1)};
  const auto with_other = RunReplay(command);
  ASSERT_TRUE(with_other.ok());
  EXPECT_EQ(with_other->back().ev5, 1);
}

TEST(ReplayCommandTest, ASourceCanBeKnownByAFewTrials) {
  ReplayCommand command = SmallCommand();
  command.strategies = {"bayes_opt"};
  command.budgets = {4};
  command.transfer = {WriteSpace("bowl_B", 0.1)};
  command.transfer_trials = 30;  // enough to find its best
  const auto enough = RunReplay(command);
  ASSERT_TRUE(enough.ok()) << enough.status();
  EXPECT_EQ(enough->back().ev5, 1);
  command.transfer_trials = 1;  // nothing to learn
  const auto little = RunReplay(command);
  command.transfer.clear();
  const auto without = RunReplay(command);
  ASSERT_TRUE(little.ok() && without.ok());
  EXPECT_EQ(little->back().mean_fraction, without->back().mean_fraction);
}

TEST(ReplayCommandTest, TwoObjectivesScoreTheHypervolume) {
  ReplayCommand command = SmallCommand();
  command.compile_time_objective = true;
  const auto rows = RunReplay(command);
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (const ReplayRow& row : *rows) {
    EXPECT_LE(row.mean_fraction, 1 + 1e-9);
    if (row.budget == 48) {
      EXPECT_NEAR(row.mean_fraction, 1, 1e-9);
    }
  }
}

TEST(ReplayCommandTest, TopKSaysWhatThePriorLost) {
  ReplayCommand command = SmallCommand();
  command.strategies = {"random"};
  // A prior that is off by two levels.
  command.prior = WriteSpace("bowl_C", 2);
  command.top_k = 4;
  const auto rows = RunReplay(command);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_LT(rows->back().best_of_top_k, 1);
  EXPECT_NEAR(rows->back().mean_fraction, rows->back().best_of_top_k, 1e-12);
}

TEST(ReplayCommandTest, RejectsWrongUse) {
  const auto message = [](const ReplayCommand& command) {
    return std::string(RunReplay(command).status().message());
  };
  ReplayCommand command;
  EXPECT_THAT(message(command), HasSubstr("no FILE is given"));
  command = SmallCommand();
  command.budgets = {100, 50};
  EXPECT_THAT(message(command), HasSubstr("budgets: 100,50"));
  command = SmallCommand();
  command.strategies = {"luck"};
  EXPECT_THAT(message(command), HasSubstr("unknown 'luck', expected all"));
  command = SmallCommand();
  command.spaces = {"nowhere.json"};
  EXPECT_THAT(message(command), HasSubstr("nowhere.json: can't be opened"));
  command = SmallCommand();
  command.top_k = 3;
  EXPECT_THAT(message(command), HasSubstr("top_k: expected a prior"));
  command = SmallCommand();
  command.transfer_trials = -1;
  EXPECT_THAT(message(command), HasSubstr("transfer_trials: -1, expected"));
  command = SmallCommand();
  command.format = "xml";
  EXPECT_THAT(std::string(FormatReplay(command, {}).status().message()),
              HasSubstr("format: 'xml'"));
}

}  // namespace
}  // namespace optrail::tuning
