// `optrail gate`: a run judged by a policy.

#include <functional>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "base/status_macros.h"
#include "cli/ab.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "cli/shared_machine.h"
#include "diagnosis/code_difference.h"
#include "fleet/queue.h"
#include "tracker/gate/gate_command.h"

ABSL_FLAG(std::string, candidate, "",
          "The commit (or run) to judge; by default the commit that is checked "
          "out, and outside git latest, the newest commit of the history.");
ABSL_FLAG(std::string, baseline, "",
          "What to compare the candidate with: a commit, run:ID, tag:NAME, "
          "merge-base:BRANCH or window:BRANCH:RUNS; by default what the policy "
          "names.");
ABSL_FLAG(std::string, verdict_out, "", "JSON file for the verdict.");
ABSL_FLAG(std::string, junit_out, "",
          "XML file for the verdict as JUnit tests, which CI services show.");
ABSL_FLAG(std::string, remeasure_out, "",
          "File for a script that measures again: the number of processes to "
          "add on each side, and on the next line their --benchmark_filter; "
          "empty if more would not help.");
ABSL_FLAG(int32_t, looks, 1,
          "Most times that this commit is gated while a script adds processes. "
          "Pass the same number each time: they share the rates of false "
          "alarms and of missed slow-downs.");

ABSL_FLAG(std::string, measure, "",
          "Command that measures again where that would tell, run by sh; it "
          "records runs of the candidate. {filter} is a --benchmark_filter, "
          "{processes} the number of processes to add. --looks says how often "
          "the gate looks in all.");
ABSL_FLAG(
    absl::Duration, wait, absl::ZeroDuration(),
    "How long to wait for runs that the candidate lacks, such as those of "
    "another machine; then the answer says what is missing.");
ABSL_FLAG(int64_t, job, 0,
          "Job of the fleet of --history that measures the candidate: no "
          "verdict before all of its tasks are done.");
ABSL_FLAG(std::string, annotations, "",
          "Annotations for a CI service on standard error: github, azure or "
          "teamcity.");
ABSL_FLAG(std::string, badge_out, "", "SVG file for a badge of the verdict.");
ABSL_FLAG(std::string, badge_label, "performance",
          "Text on the left of the badge.");
ABSL_FLAG(std::string, alert_command, "",
          "Command that is run unless the exit code is 0, with the verdict as "
          "JSON on its standard input.");

namespace optrail::cli {
namespace {

// --metric, which a policy file replaces.
std::string MetricFromFlags() {
  return absl::GetFlag(FLAGS_policy).empty() ? absl::GetFlag(FLAGS_metric) : "";
}

tracker::GateOutputs OutputsFromFlags() {
  tracker::GateOutputs outputs;
  outputs.verdict_out = UserPath(absl::GetFlag(FLAGS_verdict_out));
  outputs.markdown_out = UserPath(absl::GetFlag(FLAGS_markdown_out));
  outputs.junit_out = UserPath(absl::GetFlag(FLAGS_junit_out));
  outputs.annotations = absl::GetFlag(FLAGS_annotations);
  outputs.badge_out = UserPath(absl::GetFlag(FLAGS_badge_out));
  outputs.badge_label = absl::GetFlag(FLAGS_badge_label);
  outputs.alert_command = absl::GetFlag(FLAGS_alert_command);
  return outputs;
}

// --baseline where the gate measures itself: a commit, "commit:X" or
// "merge-base:BRANCH".
absl::Status SetBase(const std::string& baseline, tracker::AbCommand* options) {
  absl::string_view text = baseline;
  if (absl::ConsumePrefix(&text, "merge-base:")) {
    options->base_branch = std::string(text);
    return absl::OkStatus();
  }
  absl::ConsumePrefix(&text, "commit:");
  if (absl::StrContains(text, ':')) {
    return absl::InvalidArgumentError(
        absl::StrCat("--baseline=", baseline,
                     ": with --run it is a commit that is built and measured, "
                     "expected commit:NAME or merge-base:BRANCH"));
  }
  options->a = std::string(text);
  return absl::OkStatus();
}

// Measures merge base and head itself.
absl::StatusOr<int> GateByRunning() {
  tracker::AbCommand options;
  options.common = TrackerOptions();
  options.code_difference = diagnosis::BuiltDifference;
  OPTRAIL_ASSIGN_OR_RETURN(options.build, BuildOptionsFromFlags({}));
  OPTRAIL_RETURN_IF_ERROR(SetBase(absl::GetFlag(FLAGS_baseline), &options));
  const std::string candidate = absl::GetFlag(FLAGS_candidate);
  options.b = candidate.empty() || candidate == "latest" ? "HEAD" : candidate;
  options.policy = UserPath(absl::GetFlag(FLAGS_policy));
  options.metric = MetricFromFlags();
  options.outputs = OutputsFromFlags();
  options.max_rounds = absl::GetFlag(FLAGS_max_rounds);
  options.seed = absl::GetFlag(FLAGS_seed);
  options.quiet = absl::GetFlag(FLAGS_quiet);
  options.record = absl::GetFlag(FLAGS_record);
  options.suite = SuiteOfRuns();
  OPTRAIL_ASSIGN_OR_RETURN(options.hardware, HardwareOfRuns());
  AdviseMetricIfShared();
  return tracker::RunGateCommits(options, std::cout);
}

// Asks the queue how far a job of the fleet is.
absl::StatusOr<std::function<absl::StatusOr<tracker::UnfinishedWork>()>>
WorkOfJob(int64_t job) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string url, FleetUrl());
  // Opened when it is asked: the gate waits for a database that is away.
  const auto queue = std::make_shared<absl::optional<fleet::JobQueue>>();
  return [url, queue, job]() -> absl::StatusOr<tracker::UnfinishedWork> {
    if (!queue->has_value()) {
      OPTRAIL_ASSIGN_OR_RETURN(*queue, fleet::JobQueue::Open(url));
    }
    OPTRAIL_ASSIGN_OR_RETURN(const fleet::UnfinishedTasks tasks,
                             (*queue)->Unfinished(job));
    tracker::UnfinishedWork work;
    work.text = tasks.Text(job);
    work.may_end = tasks.MayEnd();
    if (!work.text.empty()) {
      absl::StrAppend(&work.text, work.may_end
                                      ? "; next: --wait=2h waits for them"
                                      : "; next: optrail fleet logs ");
      if (!work.may_end) absl::StrAppend(&work.text, job);
    }
    return work;
  };
}

const std::vector<std::string>& FlagsOfBoth() {
  static const auto* const flags = new std::vector<std::string>{
      "history",     "format",        "policy",       "metric",    "candidate",
      "baseline",    "verdict_out",   "markdown_out", "junit_out", "badge_out",
      "annotations", "alert_command", "badge_label"};
  return *flags;
}

// A policy file names the metrics, so that --metric would go unheeded.
suites::FlagUse WithoutMetricOfPolicy(suites::FlagUse use) {
  if (absl::GetFlag(FLAGS_policy).empty()) return use;
  return suites::UseAllBut(
      use.call + ", and with --policy, whose rules name metrics", use.flags,
      {"metric"});
}

suites::FlagUse FlagsUsed(const std::vector<std::string>&) {
  const std::vector<std::string> sides = {"suite", "hardware"};
  if (!HasRunCommand()) {
    return WithoutMetricOfPolicy(
        {"without --run",
         Together({FlagsOfBoth(),
                   sides,
                   {"looks", "measure", "remeasure_out", "wait", "job"}})});
  }
  suites::FlagUse use = {"with --run, which measures until it can tell",
                         Together({FlagsOfBoth(),
                                   BuildFlags(),
                                   {"record", "max_rounds", "seed", "quiet"}})};
  if (absl::GetFlag(FLAGS_record)) {
    use.flags = Together({use.flags, sides});
  } else {
    use.call = "with --run and without --record";
  }
  return WithoutMetricOfPolicy(std::move(use));
}

}  // namespace

suites::Command GateCommand() {
  suites::Command command;
  command.name = "gate";
  command.summary = "Judges a run by a policy: the exit code stops the merge.";
  command.details = HelpText("gate");
  command.flags =
      Together({FlagsOfBoth(),
                {"suite", "hardware", "remeasure_out", "looks", "measure",
                 "wait", "job", "record", "max_rounds", "seed", "quiet"},
                BuildFlags()});
  command.meanings = {
      {"metric",
       "The metric to judge, such as cpu_time: a regular expression "
       "that matches its whole name. A policy file names its own."},
      {"suite",
       "Only this suite; with --run and --record, the name of what is "
       "recorded."},
      {"hardware",
       "Only this hardware; with --run and --record, the id that "
       "is recorded."},
      {"record", "With --run: keep both sides in the history."},
      {"seed", "With --run: seed of the order in which the two sides run."}};
  const char kPolicyText[] =
      "a rule of a policy names it (docs/reference/policy_format.md), then "
      "--policy=FILE";
  for (const char* flag : {"min_effect", "detect_effect", "false_alarm_rate",
                           "filter", "op", "threshold", "tolerance"}) {
    command.instead.push_back({flag, kPolicyText});
  }
  command.use = FlagsUsed;
  command.run = [](const std::vector<std::string>&) -> absl::StatusOr<int> {
    if (HasRunCommand()) return GateByRunning();
    tracker::GateCommand options;
    options.common = TrackerOptions();
    options.outputs = OutputsFromFlags();
    options.policy = UserPath(absl::GetFlag(FLAGS_policy));
    options.metric = MetricFromFlags();
    options.candidate = absl::GetFlag(FLAGS_candidate);
    options.baseline = absl::GetFlag(FLAGS_baseline);
    options.suite = absl::GetFlag(FLAGS_suite);
    options.hardware_id = absl::GetFlag(FLAGS_hardware);
    options.remeasure_out = UserPath(absl::GetFlag(FLAGS_remeasure_out));
    options.looks = absl::GetFlag(FLAGS_looks);
    options.measure = absl::GetFlag(FLAGS_measure);
    options.wait = absl::GetFlag(FLAGS_wait);
    const int64_t job = absl::GetFlag(FLAGS_job);
    OPTRAIL_RETURN_IF_ERROR(
        tracker::CheckFlag(job >= 0, "job", job, "the number of a job"));
    if (job > 0) {
      OPTRAIL_ASSIGN_OR_RETURN(options.work, WorkOfJob(job));
    }
    return tracker::RunGate(options, std::cout);
  };
  return command;
}

}  // namespace optrail::cli
