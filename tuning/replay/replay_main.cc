// Strategies against recorded spaces:
//
//   bazel run //tuning/replay -- --spaces=DIR --strategies=all --format=csv

#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/numbers.h"
#include "tuning/replay/replay_command.h"

ABSL_FLAG(std::vector<std::string>, spaces, {},
          "Recorded spaces: files or folders of *.json[.gz|.xz].");
ABSL_FLAG(std::vector<std::string>, strategies, {"default"},
          "Names of strategies, or all.");
ABSL_FLAG(std::vector<std::string>, budgets,
          std::vector<std::string>({"50", "100", "200", "400"}),
          "Evaluations after which the score is taken, increasing.");
ABSL_FLAG(int, seeds, 10, "Runs per space and strategy.");
ABSL_FLAG(uint64_t, first_seed, 1, "Seed of the first run.");
ABSL_FLAG(int, batch, 1, "Configs asked for at a time.");
ABSL_FLAG(int, jobs, 0, "Threads; 0: one per core.");
ABSL_FLAG(std::string, format, "table", "table, csv, json or markdown.");
ABSL_FLAG(
    bool, noise, false,
    "A trial answers with one recorded repeat; the score is the true mean "
    "of what the strategy declares best.");
ABSL_FLAG(bool, compile_time_objective, false,
          "Compile time as a second objective; the score is the hypervolume.");
ABSL_FLAG(std::vector<std::string>, transfer, {},
          "Recordings of other devices to learn from (leave one out).");
ABSL_FLAG(int, transfer_trials, 0,
          "Trials of the search by which a source is known; 0: it is known "
          "entirely.");
ABSL_FLAG(bool, shuffle_transfer, false, "Permute the sources: they mislead.");
ABSL_FLAG(std::string, prior, "", "Recording whose speeds rank the configs.");
ABSL_FLAG(int, top_k, 0, "Measure only the top_k by --prior; 0: any.");

namespace optrail::tuning {
namespace {

constexpr int kWrongUse = 2;

int Main() {
  ReplayCommand command;
  command.spaces = absl::GetFlag(FLAGS_spaces);
  command.strategies = absl::GetFlag(FLAGS_strategies);
  command.budgets.clear();
  for (const std::string& text : absl::GetFlag(FLAGS_budgets)) {
    int budget = 0;
    if (!absl::SimpleAtoi(text, &budget)) {
      std::cerr << "budgets: '" << text << "', expected a number\n";
      return kWrongUse;
    }
    command.budgets.push_back(budget);
  }
  command.seeds = absl::GetFlag(FLAGS_seeds);
  command.first_seed = absl::GetFlag(FLAGS_first_seed);
  command.batch = absl::GetFlag(FLAGS_batch);
  command.jobs = absl::GetFlag(FLAGS_jobs);
  command.format = absl::GetFlag(FLAGS_format);
  command.noise = absl::GetFlag(FLAGS_noise);
  command.compile_time_objective = absl::GetFlag(FLAGS_compile_time_objective);
  command.transfer = absl::GetFlag(FLAGS_transfer);
  command.transfer_trials = absl::GetFlag(FLAGS_transfer_trials);
  command.shuffle_transfer = absl::GetFlag(FLAGS_shuffle_transfer);
  command.prior = absl::GetFlag(FLAGS_prior);
  command.top_k = absl::GetFlag(FLAGS_top_k);
  const absl::StatusOr<std::vector<ReplayRow>> rows = RunReplay(command);
  if (!rows.ok()) {
    std::cerr << rows.status().message() << "\n";
    return kWrongUse;
  }
  const absl::StatusOr<std::string> text = FormatReplay(command, *rows);
  if (!text.ok()) {
    std::cerr << text.status().message() << "\n";
    return kWrongUse;
  }
  std::cout << *text;
  return 0;
}

}  // namespace
}  // namespace optrail::tuning

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Strategies against recorded spaces.\n"
      "replay --spaces=DIR --strategies=all --seeds=50 --format=csv");
  absl::ParseCommandLine(argc, argv);
  return optrail::tuning::Main();
}
