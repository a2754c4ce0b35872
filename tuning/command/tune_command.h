#ifndef OPTRAIL_TUNING_COMMAND_TUNE_COMMAND_H_
#define OPTRAIL_TUNING_COMMAND_TUNE_COMMAND_H_

// A whole tuning session of any command: `optrail tune --command` without its
// flags, through the same engine as operators (tuning/session/session.h).
//
//   TuneCommandOptions options;
//   options.space_file = "train.space.textproto";
//   options.command = "./train --batch={batch}";
//   options.metrics = {"throughput:max"};
//   options.budget.set_trials(100);
//   OPTRAIL_ASSIGN_OR_RETURN(const auto command,
//                            TuneCommand::Prepare(options));
//   OPTRAIL_ASSIGN_OR_RETURN(const proto::Session session,
//                            command->Run({}, std::cerr));
//   return command->Print(session, std::cout, std::cerr);
//
// The first metric is what is tuned; more make it a search for the Pareto
// front, unless weights or limits name a winner. A winner is proven against the
// default config. The same call after an interruption goes on where that one
// was.
//
// It times nothing: the command prints its metrics (metric.h).

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/text/table.h"
#include "tuning/command/command_evaluator.h"
#include "tuning/proto/session.pb.h"
#include "tuning/session/session.h"
#include "tuning/space/space.h"

namespace optrail::tuning {

struct TuneCommandOptions {
  std::string space_file;  // docs/reference/space_format.md
  std::string shape;       // "n=512/f32", if the space has dimensions
  // Hardware (hw.* of the space), toolchain, commit, id and start, as far as
  // they are known.
  proto::Session header;

  std::string command;               // command_template.h
  std::vector<std::string> metrics;  // "NAME:min" or "NAME:max"; metric.h
  std::vector<std::string> metric_patterns;  // "NAME=REGEXP"; default: JSON
  std::vector<double> weights;        // one per metric; empty: the Pareto front
  std::vector<std::string> programs;  // files beside the command's own program
  CommandLimits limits;               // of one run

  std::string strategy = "default";
  uint64_t seed = 1;
  // Commands that run at the same time. More than one disturb each other's
  // timings unless they run elsewhere.
  int parallel = 1;
  // Without any limit the space is exhausted.
  proto::Budget budget;

  // How many of the best are run again, how often each on average, and in how
  // many rounds at most the best of them meets the default.
  int finalists = 3;
  int rank_rounds = 2;
  ProofOptions proof;

  // Where the journal is; empty: none, and an interrupted session is lost.
  std::string journal_directory;

  OutputFormat format = OutputFormat::kTable;
  bool quiet = false;  // no progress on the log
};

class TuneCommand {
 public:
  // InvalidArgument or NotFound: a space, command, metric, program or option
  // that is wrong. Nothing has run yet.
  static absl::StatusOr<std::unique_ptr<TuneCommand>> Prepare(
      TuneCommandOptions options);
  TuneCommand(const TuneCommand&) = delete;
  TuneCommand& operator=(const TuneCommand&) = delete;

  // Identified by the template, the metrics and the contents of the program:
  // trials of a program that has changed since are those of another task.
  const proto::Task& task() const { return setup_.header.task(); }
  bool has_journal() const { return HasSessionJournal(setup_); }

  // Tunes, or goes on; progress and notes go to `log`. Errors: a journal that
  // can't be written, or that another call is writing (IsHeldByAnother in
  // base/file/journal.h): the same call may then be tried again.
  absl::StatusOr<proto::Session> Run(std::vector<proto::Trial> known,
                                     std::ostream& log);
  // Once the session is stored.
  absl::Status RemoveJournal() const { return RemoveSessionJournal(setup_); }

  // Prints the best configs, or the front, with their metrics on `out`;
  // failures, the reason to stop and what was proven on `log`. Returns the exit
  // code: 0; without a winner or a front 3 if the machine was too busy to run a
  // finalist again, else 1. The log then says why.
  int Print(const proto::Session& session, std::ostream& out,
            std::ostream& log) const;

 private:
  TuneCommand() = default;
  void NotePrograms(std::ostream& log) const;
  void NoteOldJournal(std::ostream& log) const;
  void PrintProof(const proto::Session& session, std::ostream& log) const;

  TuneCommandOptions options_;
  SessionSetup setup_;
  std::vector<std::string> left_out_;  // of program.h
  std::unique_ptr<BoundSpace> space_;
  std::unique_ptr<CommandEvaluator> evaluator_;
  bool is_noted_ = false;  // what there is to say before the first run
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_COMMAND_TUNE_COMMAND_H_
