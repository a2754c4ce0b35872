// `optrail diagnose`: why an operator is slow, and what to do about it.

#include <iostream>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "diagnosis/diagnose_command.h"
#include "suites/command/command_flags.h"
#include "suites/command/command_line.h"
#include "suites/workload/tasks.h"

ABSL_FLAG(bool, try, false,
          "Apply the advice that can be applied (a search, another backend, "
          "more threads; never a setting of the system) and record what it "
          "brings.");
ABSL_FLAG(bool, calibration, false,
          "Measure nothing: print how the gains that were predicted compare "
          "with those that were realised, over all diagnoses of the history.");
ABSL_FLAG(int32_t, slowest, 5,
          "How many tasks to diagnose where there are several: those with the "
          "most time above the machine's ceilings.");

namespace optrail::cli {
namespace {

absl::StatusOr<int> Diagnose() {
  if (absl::GetFlag(FLAGS_calibration)) {
    return diagnosis::RunCalibration(TrackerOptions(), std::cout);
  }
  for (const char* flag : {"trials", "time_budget"}) {
    if (absl::GetFlag(FLAGS_try) || suites::FlagOrigin(flag) == "default") {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("flag --", flag,
                     ": means nothing without --try, which "
                     "searches"));
  }
  diagnosis::DiagnoseCommand options;
  options.common = TrackerOptions();
  options.workload = absl::GetFlag(FLAGS_workload);
  if (options.workload.empty() && absl::GetFlag(FLAGS_op).empty()) {
    return absl::InvalidArgumentError(
        "expected --op=NAME (and --shape=SHAPE), or --workload=NAME; next: "
        "optrail help diagnose");
  }
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Workload workload,
                           suites::WorkloadFromFlags());
  OPTRAIL_ASSIGN_OR_RETURN(suites::TaskSelection selection,
                           suites::SelectionFromFlags("", options.workload));
  if (selection.backend == suites::kBestBackend) {
    return absl::InvalidArgumentError(
        "flag --backend=best: expected the name of a backend, or all");
  }
  OPTRAIL_ASSIGN_OR_RETURN(options.bench, suites::BenchFromFlags(workload, ""));
  options.bench.with_default = !options.bench.with_tuned;
  OPTRAIL_ASSIGN_OR_RETURN(options.tune, suites::TuneFromFlags(workload));
  options.tune.retune = true;
  OPTRAIL_ASSIGN_OR_RETURN(options.context, suites::RunContextFromFlags());
  options.tune.worker.shared_folder = options.context.state;
  OPTRAIL_ASSIGN_OR_RETURN(
      options.tasks, suites::SelectTasks(selection, options.context.hardware));
  options.slowest = absl::GetFlag(FLAGS_slowest);
  options.try_advice = absl::GetFlag(FLAGS_try);
  options.quiet = absl::GetFlag(FLAGS_quiet);
  return diagnosis::RunDiagnose(options, std::cout);
}

const std::vector<std::string>& AllFlags() {
  static const auto* const flags = new std::vector<std::string>(
      Together({suites::SelectionFlags(),
                suites::PlaceFlags(),
                {"config", "select", "try", "calibration", "slowest", "trials",
                 "time_budget", "config_deadline", "max_config_mib", "format",
                 "quiet"}}));
  return *flags;
}

suites::FlagUse FlagsUsed(const std::vector<std::string>&) {
  if (!absl::GetFlag(FLAGS_calibration)) return {"", AllFlags()};
  return {"with --calibration, which reads all diagnoses of the history",
          {"calibration", "history", "format", "quiet"}};
}

}  // namespace

suites::Command DiagnoseCommand() {
  suites::Command command;
  command.name = "diagnose";
  command.summary = "Says why an operator is slow, with evidence and advice.";
  command.details = HelpText("diagnose");
  command.flags = AllFlags();
  command.use = FlagsUsed;
  command.defaults = {{"select", "tuned"}, {"trials", "40"}};
  command.run = [](const std::vector<std::string>&) { return Diagnose(); };
  command.meanings = {
      {"select", "Which config to diagnose: default or tuned."}};
  return command;
}

}  // namespace optrail::cli
