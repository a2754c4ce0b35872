#ifndef OPTRAIL_TUNING_REPLAY_REPLAY_COMMAND_H_
#define OPTRAIL_TUNING_REPLAY_REPLAY_COMMAND_H_

// The command `optrail replay` without its flags: strategies against recorded
// spaces.
//
//   ReplayCommand command;
//   command.spaces = {"recordings/"};
//   command.strategies = {"all"};
//   OPTRAIL_ASSIGN_OR_RETURN(const std::vector<ReplayRow> rows,
//                            RunReplay(command));
//   std::cout << *FormatReplay(command, rows);

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace optrail::tuning {

struct ReplayCommand {
  std::vector<std::string> spaces;      // files or folders of *.json[.gz|.xz]
  std::vector<std::string> strategies;  // names, or "all"; empty: the default
  std::vector<int> budgets = {50, 100, 200, 400};
  int seeds = 10;           // runs per space and strategy
  uint64_t first_seed = 1;  // seeds are first_seed, first_seed + 1, ...
  int batch = 1;
  int jobs = 0;                  // threads; 0: one per core
  std::string format = "table";  // table, csv, json or markdown

  // The modes of ReplayRun.
  bool noise = false;
  bool compile_time_objective = false;

  // Recordings of other devices: each is a source for every space with the same
  // knobs but another name (leave one device out).
  std::vector<std::string> transfer;
  // What is known of a source is what a search of so many trials found there;
  // 0: everything.
  int transfer_trials = 0;
  // Permutes the sources' results: a source that misleads.
  bool shuffle_transfer = false;

  // A recording whose speeds rank the configs; only top_k are measured.
  std::string prior;
  int top_k = 0;
};

struct ReplayRow {
  std::string space;
  std::string strategy;  // "random_exact" is the baseline in closed form
  int budget = 0;
  double mean_fraction = 0;
  double stderr_fraction = 0;
  double ev5 = 0;
  int seeds = 0;
  double cpu_ms_per_run = 0;
  double winner_loss = 0;  // noise mode
  double best_of_top_k = 1;
};

// The recordings that files and folders stand for; NotFound names the folder
// that has none.
absl::StatusOr<std::vector<std::string>> ExpandSpaces(
    const std::vector<std::string>& paths);
// Those of a command, which names at least one.
absl::StatusOr<std::vector<std::string>> SpacesOf(const ReplayCommand& command);

// Errors name the file or option at fault.
absl::StatusOr<std::vector<ReplayRow>> RunReplay(const ReplayCommand& command);

// csv has the header
// space,strategy,budget,mean_fraction,stderr,ev5,seeds,cpu_ms_per_run and in
// noise mode also winner_loss, with top_k also best_of_top_k. table and
// markdown have one line per space and strategy, and the mean over spaces.
absl::StatusOr<std::string> FormatReplay(const ReplayCommand& command,
                                         const std::vector<ReplayRow>& rows);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_REPLAY_REPLAY_COMMAND_H_
