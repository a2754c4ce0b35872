// `optrail tune`: operators, or with --command any command line.

#include <iostream>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "cli/flags.h"
#include "suites/command/command_flags.h"
#include "suites/command/commands.h"
#include "suites/worker/run_context.h"
#include "tuning/command/tune_command.h"

ABSL_FLAG(std::string, command, "",
          "Tune this shell command: {knob} stands for the knob's value. It "
          "prints its metrics.");
ABSL_FLAG(std::string, space, "",
          "Space file of the command's knobs (docs/space_format.md).");
ABSL_FLAG(
    std::string, metric_pattern, "",
    "NAME=REGEXP: how a metric of the command is found in its output, the "
    "first group is the number; one a line. By default the output has a "
    "line of JSON with NAME in it.");
ABSL_FLAG(std::vector<std::string>, weights, {},
          "One number per metric: minimise the weighted product instead of "
          "searching for the Pareto front.");
ABSL_FLAG(absl::Duration, command_timeout, absl::Minutes(10),
          "A run of the command that takes longer is killed.");
ABSL_FLAG(int32_t, parallel, 1,
          "Runs of the command at the same time; more than one disturb each "
          "other's timings unless they run elsewhere.");
ABSL_FLAG(double, target_value, 0,
          "Stop once the first metric reaches this; 0: never.");
ABSL_FLAG(double, min_expected_improvement, 0,
          "Stop when the strategy expects less, as a fraction; 0: never.");

namespace optrail::cli {
namespace {

absl::Status CheckNumbers() {
  const auto count = [](const char* flag, int64_t value, int least) {
    return tracker::CheckFlag(value >= least && value <= 100'000'000, flag,
                              value, absl::StrCat(least, " to 100000000"));
  };
  const double improvement = absl::GetFlag(FLAGS_min_expected_improvement);
  for (const absl::Status& status :
       {count("trials", absl::GetFlag(FLAGS_trials), 0),
        count("patience", absl::GetFlag(FLAGS_patience), 0),
        count("finalists", absl::GetFlag(FLAGS_finalists), 0),
        count("parallel", absl::GetFlag(FLAGS_parallel), 1),
        tracker::CheckFlag(improvement >= 0, "min_expected_improvement",
                           improvement, "at least 0"),
        CheckDuration("time_budget", absl::GetFlag(FLAGS_time_budget),
                      absl::ZeroDuration()),
        CheckDuration("command_timeout", absl::GetFlag(FLAGS_command_timeout),
                      absl::Milliseconds(1))}) {
    OPTRAIL_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

absl::StatusOr<int> TuneAnyCommand() {
  tuning::TuneCommandOptions options;
  if (absl::GetFlag(FLAGS_space).empty() ||
      absl::GetFlag(FLAGS_metric).empty()) {
    return absl::InvalidArgumentError(
        "--command needs --space=FILE and --metric=NAME:min or NAME:max");
  }
  if (absl::GetFlag(FLAGS_total_trials) != 0 ||
      absl::GetFlag(FLAGS_total_time) != absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        "--total_trials and --total_time divide a budget over several "
        "operators; a command is one task: --trials, --time_budget");
  }
  OPTRAIL_RETURN_IF_ERROR(CheckNumbers());
  OPTRAIL_ASSIGN_OR_RETURN(const suites::RunContext context,
                           suites::RunContextFromFlags());
  options.space_file = UserPath(absl::GetFlag(FLAGS_space));
  options.shape = absl::GetFlag(FLAGS_shape);
  options.hardware = context.hardware;
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
  options.strategy = absl::GetFlag(FLAGS_strategy);
  options.seed = absl::GetFlag(FLAGS_seed);
  options.parallel = absl::GetFlag(FLAGS_parallel);
  options.max_trials = static_cast<int>(absl::GetFlag(FLAGS_trials));
  if (const absl::Duration time = absl::GetFlag(FLAGS_time_budget);
      time > absl::ZeroDuration()) {
    options.max_time = time;
  }
  options.patience_trials = static_cast<int>(absl::GetFlag(FLAGS_patience));
  options.min_expected_improvement =
      absl::GetFlag(FLAGS_min_expected_improvement);
  options.target = absl::GetFlag(FLAGS_target_value);
  options.finalists = absl::GetFlag(FLAGS_finalists);
  options.journal_directory = JoinPath(context.state, "commands");
  options.format = absl::GetFlag(FLAGS_format);
  options.quiet = absl::GetFlag(FLAGS_quiet);
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(options.journal_directory));
  return tuning::RunTuneCommand(options, std::cout, std::cerr);
}

}  // namespace

suites::Command TuneCommand() {
  suites::Command command = suites::TuneCommand("");
  command.summary =
      "Tunes operators, or any command, per shape on this machine.";
  command.details +=
      "\n"
      "With --command any program is tuned, by the metrics it prints:\n"
      "\n"
      "  tune --space=train.space.textproto --trials=50 \\\n"
      "    --command='./train --batch={batch}' "
      "--metric=throughput:max\n";
  for (const char* flag : {"command", "space", "metric", "metric_pattern",
                           "weights", "command_timeout", "parallel",
                           "target_value", "min_expected_improvement"}) {
    command.flags.push_back(flag);
  }
  command.defaults.push_back({"metric", ""});
  command.run = [tune_operators =
                     command.run](const std::vector<std::string>& arguments) {
    return absl::GetFlag(FLAGS_command).empty() ? tune_operators(arguments)
                                                : TuneAnyCommand();
  };
  return command;
}

}  // namespace optrail::cli
