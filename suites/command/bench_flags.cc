// The flags of `bench`.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/closest.h"
#include "base/text/quote.h"
#include "suites/bench/google_benchmark_face.h"
#include "suites/command/command_flags.h"
#include "suites/command/shared_flags.h"
#include "suites/command/tune_program.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/tune/objectives.h"
#include "suites/tune/session_evaluator.h"
#include "suites/workload/workload.h"
#include "tracker/command/command_support.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/objective.h"

ABSL_FLAG(int32_t, meter_windows, 1,
          "With --objective=joules: windows in which each process is metered; "
          "their median counts.");
ABSL_FLAG(absl::Duration, meter_window, absl::ZeroDuration(),
          "With --objective=joules: how long a window is at least, such as "
          "60s; by default as long as the device's sensor needs.");
ABSL_FLAG(
    std::string, inputs, "typical",
    "What is timed and metered: typical values, or zeros, which take less "
    "energy and are not recorded.");
ABSL_FLAG(
    std::vector<std::string>, select,
    std::vector<std::string>({"default", "tuned"}),
    "Which configs to benchmark: default, tuned, or both as default,tuned.");
ABSL_FLAG(std::string, config, "",
          "A config, knob=value,..., to run in place of the tuned one.");
ABSL_FLAG(std::string, config_name, "",
          "Run --config beside the others, as a series of this name.");
ABSL_FLAG(bool, record, false, "Add the run to the history.");
ABSL_FLAG(bool, resume, false,
          "Go on from what the same command had measured when it was "
          "interrupted or killed; with nothing of it kept, begin.");
ABSL_FLAG(std::string, suite, "",
          "Name of the run in the history; by default the workload, the "
          "operator, or of imported results what made them.");
ABSL_FLAG(std::string, pairing, "",
          "Id of the runs that are measured in turn with this one; they are "
          "judged as pairs of a --round.");
ABSL_FLAG(int, round, 0, "Which turn of --pairing this is, from 1.");

namespace optrail::suites {
namespace {

// --meter_windows, --meter_window and --inputs.
absl::Status SetMeteringFromFlags(BenchOptions& options) {
  options.meter_windows = absl::GetFlag(FLAGS_meter_windows);
  OPTRAIL_RETURN_IF_ERROR(
      CheckRange("meter_windows", options.meter_windows, 1, 1000));
  options.meter_window = absl::GetFlag(FLAGS_meter_window);
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      options.meter_window >= absl::ZeroDuration() &&
          options.meter_window <= absl::Hours(1),
      "meter_window", absl::FormatDuration(options.meter_window),
      "a duration of at most an hour, such as 60s"));
  const std::string inputs = absl::GetFlag(FLAGS_inputs);
  options.zero_inputs = inputs == "zeros";
  return tracker::CheckFlag(inputs == "zeros" || inputs == "typical", "inputs",
                            inputs, "typical or zeros");
}

// The command that tunes what this one selects.
std::string TuneCommandLine(const std::string& op,
                            const proto::Workload& workload) {
  // The binary of one operator has a neighbour that tunes it.
  std::string text = op.empty() ? "optrail tune" : TuneProgramBeside(OwnPath());
  if (absl::GetFlag(FLAGS_workload).empty() && !workload.name().empty()) {
    absl::StrAppend(&text, " --workload=", workload.name());  // of a suite
  }
  for (const std::string& name : SelectionFlags()) {
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    if (flag->CurrentValue() == flag->DefaultValue()) continue;
    // A test operator's own binaries mean that operator without a flag.
    if (!op.empty() && name == "with_test_operators") continue;
    std::string value = flag->CurrentValue();
    // To know the best, all have to be tuned.
    if (name == "backend" && value == kBestBackend) value = kAllBackends;
    absl::StrAppend(&text, " --", name, "=", QuoteForShell(value));
  }
  return text;
}

// --select, --config and --config_name.
absl::Status SetConfigsFromFlags(BenchDriverOptions& options) {
  options.with_default = false;
  options.with_tuned = false;
  for (const std::string& selection : absl::GetFlag(FLAGS_select)) {
    if (selection == "default") {
      options.with_default = true;
    } else if (selection == "tuned") {
      options.with_tuned = true;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("flag --select: \"", selection, "\", ",
                       ExpectedOneOf(selection, {"default", "tuned"})));
    }
  }
  const std::string config = absl::GetFlag(FLAGS_config);
  options.given_name = absl::GetFlag(FLAGS_config_name);
  if (!config.empty()) {
    absl::StatusOr<proto::Config> parsed = tuning::ParseConfig(config);
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("flag --config: ", parsed.status().message()));
    }
    options.given_config = *std::move(parsed);
  } else if (!options.given_name.empty()) {
    return absl::InvalidArgumentError(
        "flag --config_name names what --config gives, which is missing");
  }
  return absl::OkStatus();
}

// --pairing and --round.
absl::Status SetPairingFromFlags(BenchDriverOptions& options) {
  options.pairing_id = absl::GetFlag(FLAGS_pairing);
  options.round = absl::GetFlag(FLAGS_round);
  const bool plain = std::all_of(
      options.pairing_id.begin(), options.pairing_id.end(), [](char c) {
        return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
      });
  if (!plain || options.pairing_id.size() > 80) {
    return absl::InvalidArgumentError(absl::StrCat(
        "flag --pairing: \"", absl::CHexEscape(options.pairing_id),
        "\", expected at most 80 letters, digits, '-', '_' and '.'"));
  }
  if (options.round < 0 || (options.round > 0) == options.pairing_id.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("flag --round: ", options.round,
                     ", expected 1 or more with --pairing, else 0"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> BenchFlags() {
  return {"select", "config",          "config_name",    "record",
          "suite",  "pairing",         "round",          "processes",
          "seed",   "config_deadline", "max_config_mib", "resume",
          "inputs", "meter_window",    "meter_windows"};
}

absl::StatusOr<BenchDriverOptions> BenchFromFlags(
    const proto::Workload& workload, const std::string& op) {
  BenchDriverOptions options;
  options.workload = workload;
  OPTRAIL_RETURN_IF_ERROR(CheckGoogleBenchmarkFlags());
  OPTRAIL_ASSIGN_OR_RETURN(options.worker, WorkerFromFlags());
  OPTRAIL_RETURN_IF_ERROR(CheckRange(
      "processes", absl::GetFlag(FLAGS_processes), 0, kMostProcesses));
  int processes = BenchmarkRepetitions();
  if (processes == 0) processes = absl::GetFlag(FLAGS_processes);
  if (processes == 0) processes = workload.processes();
  options.bench.processes = processes > 0 ? processes : kDefaultProcesses;
  options.bench.sampling = BenchSamplingOptions();
  if (const double min_time_s = BenchmarkMinTimeSeconds(); min_time_s > 0) {
    options.bench.sampling.set_max_time_ns(
        static_cast<int64_t>(min_time_s * 1e9));
    options.bench.sampling.set_target_relative_half_width(0);
    options.bench.sampling.set_max_samples(1'000'000);
    // Deadlines are for configs that hang, not for long sampling.
    options.worker.config_deadline += absl::Seconds(4 * min_time_s);
  }
  OPTRAIL_RETURN_IF_ERROR(SetMeteringFromFlags(options.bench));
  options.resume = absl::GetFlag(FLAGS_resume);
  options.bench.random_interleaving = BenchmarkRandomInterleaving();
  options.bench.seed = absl::GetFlag(FLAGS_seed);

  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<proto::Objective> objectives,
                           ObjectivesFromFlags(/*may_open_device=*/true));
  options.objective = ObjectiveKey(objectives);
  options.metrics = MeteredOf(tuning::MetricsOf(objectives));
  OPTRAIL_RETURN_IF_ERROR(SetConfigsFromFlags(options));
  options.tune_command = TuneCommandLine(op, workload);
  options.suite = absl::GetFlag(FLAGS_suite);
  if (options.suite.empty()) options.suite = workload.name();
  if (options.suite.empty()) {
    options.suite = op.empty() ? absl::GetFlag(FLAGS_op) : op;
  }
  if (options.suite.empty()) options.suite = "all";
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckName("suite", options.suite));
  options.quiet = absl::GetFlag(FLAGS_quiet);
  OPTRAIL_RETURN_IF_ERROR(SetPairingFromFlags(options));
  return options;
}

}  // namespace optrail::suites
