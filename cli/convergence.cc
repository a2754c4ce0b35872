// `optrail convergence`: what is wrong with tuning sessions, and the remedy.

#include <iostream>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/time/time.h"
#include "base/process/running_binary.h"
#include "base/status_macros.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "diagnosis/cases.h"
#include "diagnosis/search_again.h"
#include "diagnosis/try_remedies.h"
#include "suites/command/command_flags.h"
#include "tracker/convergence/convergence_command.h"
#include "tracker/history/history.h"

ABSL_DECLARE_FLAG(bool, try);

ABSL_FLAG(std::vector<std::string>, fail_on, {},
          "Findings that make the exit code 1, such as "
          "does_not_converge,tuner_worse; or all.");

namespace optrail::cli {
namespace {

// Tries what the findings advise, and records each session's outcome.
absl::StatusOr<diagnosis::SearchTools> SearchToolsFromFlags() {
  diagnosis::SearchTools tools;
  OPTRAIL_ASSIGN_OR_RETURN(tools.context, suites::RunContextFromFlags());
  OPTRAIL_ASSIGN_OR_RETURN(tools.tune,
                           suites::TuneFromFlags(proto::Workload()));
  tools.tune.worker.shared_folder = tools.context.state;
  // Unless told otherwise, a search ends by the trials that its remedy names.
  if (absl::GetFlag(FLAGS_time_budget) == absl::ZeroDuration()) {
    tools.tune.tune.budget.clear_time_ns();
  }
  tools.limits.timeout = absl::GetFlag(FLAGS_command_timeout);
  tools.limits.guard = RunningBinary();
  OPTRAIL_ASSIGN_OR_RETURN(tools.limits.max_resident_bytes,
                           CommandMemoryLimit());
  return tools;
}

absl::Status TryAll(const diagnosis::SearchTools& tools,
                    const tracker::History& history,
                    std::vector<tracker::Finding>& findings) {
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckHistoryIsWritable(history.dir()));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::LoadedDiagnoses earlier,
                           history.LoadDiagnoses());
  std::vector<proto::Diagnosis> tried = diagnosis::TryRemedies(
      [&](const std::string& id) { return history.ReadSession(id); },
      [&](const diagnosis::SearchAgain& search) {
        return diagnosis::RunSearchAgain(search, tools);
      },
      &findings);
  for (proto::Diagnosis& one : tried) {
    one.set_diagnosis_id(tracker::NewRecordId(one.created_unix_ns()));
    *one.mutable_commit() = tools.context.commit;
    for (const diagnosis::Similar& similar :
         diagnosis::SimilarCases(one, earlier.diagnoses)) {
      one.add_similar(diagnosis::CitationOf(*similar.diagnosis));
    }
    OPTRAIL_RETURN_IF_ERROR(history.AppendDiagnosis(one));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Converge() {
  tracker::ConvergenceCommand options;
  options.common = TrackerOptions();
  options.hardware_id = absl::GetFlag(FLAGS_hardware);
  options.filter = absl::GetFlag(FLAGS_filter);
  options.fail_on = absl::GetFlag(FLAGS_fail_on);
  options.policy = UserPath(absl::GetFlag(FLAGS_policy));
  if (absl::GetFlag(FLAGS_try)) {
    OPTRAIL_ASSIGN_OR_RETURN(const diagnosis::SearchTools tools,
                             SearchToolsFromFlags());
    options.try_them = [tools](const tracker::History& history,
                               std::vector<tracker::Finding>& findings) {
      return TryAll(tools, history, findings);
    };
  }
  return tracker::RunConvergence(options, std::cout);
}

}  // namespace

suites::Command ConvergenceCommand() {
  suites::Command command;
  command.name = "convergence";
  command.summary = "Says what went wrong in tuning sessions, and the remedy.";
  command.details = HelpText("convergence");
  command.flags = {"history",
                   "format",
                   "hardware",
                   "filter",
                   "fail_on",
                   "policy",
                   "try",
                   "time_budget",
                   "config_deadline",
                   "max_config_mib",
                   "command_timeout",
                   "command_memory_mib",
                   "quiet"};
  command.meanings = {
      {"hardware", "Only sessions of the hardware with this id."},
      {"filter", "Only sessions whose task this regular expression matches."},
      {"policy",
       "Policy file whose fail_on_finding names findings that make "
       "the exit code 1."},
      {"try",
       "Apply the remedies that one more search applies (a wider range, "
       "another strategy or prior, a constraint, a larger budget), and record "
       "what they bring."},
      {"time_budget",
       "Longest search that --try makes for a remedy; 0: as many trials as the "
       "remedy names, or the session had."}};
  command.run = [](const std::vector<std::string>&) { return Converge(); };
  return command;
}

}  // namespace optrail::cli
