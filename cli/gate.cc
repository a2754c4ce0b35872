// `optrail gate`: a run judged by a policy.

#include <iostream>

#include "absl/flags/flag.h"
#include "cli/flags.h"
#include "tracker/gate/gate_command.h"

ABSL_FLAG(std::string, candidate, "latest", "The run or commit to judge.");
ABSL_FLAG(std::string, baseline, "",
          "What to judge it by; by default what the policy says.");
ABSL_FLAG(std::string, verdict_out, "", "JSON file for the verdict.");
ABSL_FLAG(std::string, markdown_out, "", "Markdown file for the pull request.");
ABSL_FLAG(std::string, remeasure_out, "",
          "File for a script that measures again: the number of processes to "
          "add on\neach side, and on the next line their --benchmark_filter; "
          "empty if more\nwould not help.");
ABSL_FLAG(int32_t, looks, 1,
          "How often this gate may be asked while processes are added; the "
          "looks share\nthe false-alarm rate.");

namespace optrail::cli {

suites::Command GateCommand() {
  suites::Command command;
  command.name = "gate";
  command.summary = "Judges a run by a policy: the exit code stops the merge.";
  command.details =
      "Exit codes: 0 fine, 1 a regression or a failed benchmark, 2 wrong use "
      "or\n"
      "bad input, 3 not enough data to tell.\n"
      "\n"
      "  optrail bench --workload=smoke --record\n"
      "  optrail gate --policy=ci/policy.textproto --markdown_out=gate.md\n";
  command.flags = {"history",       "format", "policy",      "candidate",
                   "baseline",      "suite",  "verdict_out", "markdown_out",
                   "remeasure_out", "looks"};
  command.run = [](const std::vector<std::string>&) {
    tracker::GateCommand options;
    options.common = TrackerOptions();
    const auto path = [](const std::string& flag) {
      return flag.empty() ? flag : UserPath(flag);
    };
    options.policy = path(absl::GetFlag(FLAGS_policy));
    options.candidate = absl::GetFlag(FLAGS_candidate);
    options.baseline = absl::GetFlag(FLAGS_baseline);
    options.suite = absl::GetFlag(FLAGS_suite);
    options.verdict_out = path(absl::GetFlag(FLAGS_verdict_out));
    options.markdown_out = path(absl::GetFlag(FLAGS_markdown_out));
    options.remeasure_out = path(absl::GetFlag(FLAGS_remeasure_out));
    options.looks = absl::GetFlag(FLAGS_looks);
    return tracker::RunGate(options, std::cout);
  };
  return command;
}

}  // namespace optrail::cli
