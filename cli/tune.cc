// `optrail tune`: operators, or with --command any command line.

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/file/retry_while_held.h"
#include "base/process/running_binary.h"
#include "base/status_macros.h"
#include "cli/flags.h"
#include "suites/command/command_flags.h"
#include "suites/command/commands.h"
#include "suites/tune/known_trials.h"
#include "suites/worker/run_context.h"
#include "tracker/history/history.h"
#include "tuning/command/tune_command.h"
#include "tuning/proto/canonical.h"

ABSL_DECLARE_FLAG(std::vector<std::string>, weights);
ABSL_DECLARE_FLAG(bool, retune);
ABSL_DECLARE_FLAG(bool, forget);

ABSL_FLAG(std::string, command, "",
          "Tune this shell command: {knob} stands for the knob's value. It "
          "prints its metrics.");
ABSL_FLAG(
    std::string, space, "",
    "Space file of the command's knobs (docs/reference/space_format.md).");
ABSL_FLAG(
    std::string, metric_pattern, "",
    "NAME=REGEXP: how a metric of the command is found in its output, the "
    "first group is the number; one a line. By default the output has a "
    "line of JSON with NAME in it.");
ABSL_FLAG(std::vector<std::string>, program, {},
          "Files that the command's program consists of, beside the one that "
          "its first word stands for: readings of other contents are those of "
          "another task.");
ABSL_FLAG(absl::Duration, command_timeout, absl::Minutes(10),
          "A run of the command that takes longer is killed.");
ABSL_FLAG(int64_t, command_memory_mib, 0,
          "A run whose processes together take more MiB than this is "
          "killed; 0: no limit.");
ABSL_FLAG(int32_t, parallel, 1,
          "Runs of the command at the same time; more than one disturb each "
          "other's timings unless they run elsewhere.");
ABSL_FLAG(double, target_value, 0,
          "Stop once the first metric reaches this; 0: never.");
ABSL_FLAG(optrail::Percentage, min_expected_improvement, {0},
          "Stop when the strategy expects less; 0: never.");

namespace optrail::cli {
namespace {

absl::Status CheckNumbers() {
  const auto count = [](const char* flag, int64_t value, int least) {
    return tracker::CheckFlag(value >= least && value <= 100'000'000, flag,
                              value, absl::StrCat(least, " to 100000000"));
  };
  const double improvement =
      absl::GetFlag(FLAGS_min_expected_improvement).fraction;
  for (const absl::Status& status :
       {count("trials", absl::GetFlag(FLAGS_trials), 0),
        count("patience", absl::GetFlag(FLAGS_patience), 0),
        count("finalists", absl::GetFlag(FLAGS_finalists), 0),
        count("parallel", absl::GetFlag(FLAGS_parallel), 1),
        tracker::CheckFlag(improvement >= 0, "min_expected_improvement",
                           improvement, "at least 0"),
        CheckDuration("time_budget", absl::GetFlag(FLAGS_time_budget),
                      absl::ZeroDuration()),
        CheckDuration("proof_time", absl::GetFlag(FLAGS_proof_time),
                      absl::ZeroDuration()),
        CheckDuration("command_timeout", absl::GetFlag(FLAGS_command_timeout),
                      absl::Milliseconds(1))}) {
    OPTRAIL_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

// Prints what an earlier session of the same command, program and metrics
// found; nullopt if there is none.
absl::StatusOr<absl::optional<int>> PrintKnown(
    const tuning::TuneCommand& command, const tracker::History& history,
    const tracker::SessionList& earlier) {
  const std::string key = tuning::TrialKey(command.task(), proto::Config());
  for (auto info = earlier.sessions.rbegin(); info != earlier.sessions.rend();
       ++info) {
    if (tuning::TrialKey(info->header.task(), proto::Config()) != key) continue;
    OPTRAIL_ASSIGN_OR_RETURN(const proto::Session session,
                             history.ReadSession(info->id()));
    std::cerr << "tuned already, by session " << session.session_id()
              << "; --retune goes on from what it tried, with --forget from "
                 "nothing\n";
    return absl::make_optional(command.Print(session, std::cout, std::cerr));
  }
  return absl::optional<int>();
}

// Runs the session; or returns the exit code of printing what an earlier one
// found. While another call tunes the same, this one waits, as for operators:
// its answer may be enough.
absl::StatusOr<absl::optional<int>> RunWhenFree(tuning::TuneCommand& command,
                                                const tracker::History& history,
                                                proto::Session* session) {
  absl::optional<int> found;
  OPTRAIL_RETURN_IF_ERROR(RetryWhileHeld(
      [&](bool) -> absl::Status {
        OPTRAIL_ASSIGN_OR_RETURN(const tracker::SessionList earlier,
                                 history.ListSessions());
        if (!absl::GetFlag(FLAGS_retune) && !command.has_journal()) {
          OPTRAIL_ASSIGN_OR_RETURN(found,
                                   PrintKnown(command, history, earlier));
          if (found.has_value()) return absl::OkStatus();
        }
        OPTRAIL_RETURN_IF_ERROR(tracker::CheckHistoryIsWritable(history.dir()));
        std::vector<proto::Trial> known;
        if (!absl::GetFlag(FLAGS_forget)) {
          known =
              suites::KnownTrials(history, earlier.sessions, command.task());
        }
        OPTRAIL_ASSIGN_OR_RETURN(*session,
                                 command.Run(std::move(known), std::cerr));
        return absl::OkStatus();
      },
      [](const std::string& why) {
        std::cerr << "note: waits: " << why << "\n";
      }));
  return found;
}

// Flags that say something only of a command that is tuned.
std::vector<std::string> FlagsOfCommands() {
  return {"space",
          "program",
          "metric_pattern",
          "command_timeout",
          "command_memory_mib",
          "parallel",
          "target_value",
          "min_expected_improvement"};
}

// A flag of the other kind of task would go unheeded; a space without its
// command would start tuning every operator there is.
suites::FlagUse FlagsUsed(const std::vector<std::string>& all) {
  std::vector<std::string> unused = {"op",
                                     "shape",
                                     "workload",
                                     "threads",
                                     "device",
                                     "backend",
                                     "cache",
                                     "launch",
                                     "worker",
                                     "objective",
                                     "config_deadline",
                                     "max_config_mib",
                                     "processes",
                                     "total_trials",
                                     "total_time",
                                     "with_test_operators",
                                     "price_per_kwh",
                                     "price_per_hour",
                                     "preset",
                                     "dry_run",
                                     "numerics",
                                     "store"};
  std::string call = "with --command, which is one task";
  if (absl::GetFlag(FLAGS_command).empty()) {
    call = "without --command='./program {knob}' --metric=NAME:min";
    unused = Together({FlagsOfCommands(), {"metric"}});
  }
  return suites::UseAllBut(call, all, unused);
}

absl::StatusOr<int> TuneAnyCommand() {
  tuning::TuneCommandOptions options;
  if (absl::GetFlag(FLAGS_space).empty() ||
      absl::GetFlag(FLAGS_metric).empty()) {
    return absl::InvalidArgumentError(
        "--command needs --space=FILE and --metric=NAME:min or NAME:max");
  }
  OPTRAIL_RETURN_IF_ERROR(CheckNumbers());
  OPTRAIL_ASSIGN_OR_RETURN(const suites::RunContext context,
                           suites::RunContextFromFlags());
  options.space_file = UserPath(absl::GetFlag(FLAGS_space));
  options.shape = absl::GetFlag(FLAGS_shape);
  proto::Session& header = options.header;
  header.set_started_unix_ns(Clock::Real()->WallNs());
  header.set_session_id(tracker::NewRecordId(header.started_unix_ns()));
  *header.mutable_hardware() = context.hardware;
  *header.mutable_toolchain() = context.toolchain;
  *header.mutable_commit() = context.commit;
  options.command = absl::GetFlag(FLAGS_command);
  options.metrics =
      absl::StrSplit(absl::GetFlag(FLAGS_metric), ',', absl::SkipEmpty());
  for (const absl::string_view line : absl::StrSplit(
           absl::GetFlag(FLAGS_metric_pattern), '\n', absl::SkipEmpty())) {
    options.metric_patterns.emplace_back(line);
  }
  for (const std::string& text : absl::GetFlag(FLAGS_weights)) {
    double weight = 0;
    if (!absl::SimpleAtod(text, &weight)) {
      return absl::InvalidArgumentError(
          absl::StrCat("flag --weights: \"", text, "\", expected a number"));
    }
    options.weights.push_back(weight);
  }
  options.limits.timeout = absl::GetFlag(FLAGS_command_timeout);
  options.limits.working_directory = context.workspace;
  options.limits.guard = RunningBinary();
  OPTRAIL_ASSIGN_OR_RETURN(options.limits.max_resident_bytes,
                           CommandMemoryLimit());
  options.strategy = absl::GetFlag(FLAGS_strategy);
  options.seed = absl::GetFlag(FLAGS_seed);
  options.parallel = absl::GetFlag(FLAGS_parallel);
  proto::Budget& budget = options.budget;
  if (const int64_t trials = absl::GetFlag(FLAGS_trials); trials > 0) {
    budget.set_trials(trials);
  }
  if (const int64_t patience = absl::GetFlag(FLAGS_patience); patience > 0) {
    budget.set_patience_trials(patience);
  }
  if (const double least =
          absl::GetFlag(FLAGS_min_expected_improvement).fraction;
      least > 0) {
    budget.set_min_expected_improvement(least);
  }
  if (const double target = absl::GetFlag(FLAGS_target_value); target > 0) {
    budget.set_target(target);
  }
  for (const std::string& program : absl::GetFlag(FLAGS_program)) {
    options.programs.push_back(UserPath(program));
  }
  options.finalists = absl::GetFlag(FLAGS_finalists);
  if (const absl::Duration proof_time = absl::GetFlag(FLAGS_proof_time);
      proof_time > absl::ZeroDuration()) {
    options.proof.max_time = proof_time;
  }
  suites::DivideTimeBudget(absl::GetFlag(FLAGS_time_budget), &budget,
                           &options.proof);
  options.journal_directory = JoinPath(context.state, "commands");
  options.format = absl::GetFlag(FLAGS_format);
  options.quiet = absl::GetFlag(FLAGS_quiet);
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<tuning::TuneCommand> command,
                           tuning::TuneCommand::Prepare(options));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                           tracker::History::Open(context.history));
  proto::Session session;
  OPTRAIL_ASSIGN_OR_RETURN(const absl::optional<int> found,
                           RunWhenFree(*command, history, &session));
  if (found.has_value()) return *found;
  // Recorded first, then the journal goes, as for operators.
  const absl::Status recorded = history.AppendSession(session);
  if (!recorded.ok() && !absl::IsAlreadyExists(recorded)) return recorded;
  OPTRAIL_RETURN_IF_ERROR(command->RemoveJournal());
  const int code = command->Print(session, std::cout, std::cerr);
  std::cerr << "recorded: optrail show " << session.session_id() << "\n";
  return code;
}

}  // namespace

absl::StatusOr<int64_t> CommandMemoryLimit() {
  const int64_t mebibytes = absl::GetFlag(FLAGS_command_memory_mib);
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      mebibytes >= 0 && mebibytes <= (int64_t{1} << 40), "command_memory_mib",
      mebibytes, "MiB, 0 for no limit"));
  return mebibytes << 20;
}

suites::Command TuneCommand() {
  suites::Command command = suites::TuneCommand("");
  command.summary =
      "Tunes operators, or any command, per shape on this machine.";
  command.details +=
      "\n"
      "With --command any program is tuned, by the metrics it prints:\n"
      "\n"
      "  optrail tune --space=train.space.textproto --trials=50 \\\n"
      "    --command='./train --batch={batch}' "
      "--metric=throughput:max\n";
  command.flags =
      Together({command.flags, {"command", "metric"}, FlagsOfCommands()});
  command.defaults.push_back({"metric", ""});
  command.meanings = {
      {"metric",
       "What --command is judged by, NAME:min or NAME:max, with an optional "
       "limit (memory_mb:min<=32); several, separated by commas, are a search "
       "for the Pareto front."}};
  const char kLimitsText[] =
      "a command has --command_timeout and --command_memory_mib";
  const char kBudgetText[] = "a command has --trials and --time_budget";
  command.instead = {{"config_deadline", kLimitsText},
                     {"max_config_mib", kLimitsText},
                     {"total_trials", kBudgetText},
                     {"total_time", kBudgetText},
                     {"objective", "a command has --metric=NAME:min"},
                     {"preset", "presets are of operators"}};
  command.lists = {"metric"};
  command.use = [all = command.flags](const std::vector<std::string>&) {
    return FlagsUsed(all);
  };
  command.run =
      [tune_operators = command.run](
          const std::vector<std::string>& arguments) -> absl::StatusOr<int> {
    if (!absl::GetFlag(FLAGS_command).empty()) return TuneAnyCommand();
    return tune_operators(arguments);
  };
  return command;
}

}  // namespace optrail::cli
