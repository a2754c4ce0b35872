// `optrail compare --binaries A B` and `--commits A B`: interleaved programs.

#include "cli/ab.h"

#include <iostream>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/stats/paired_test.h"
#include "base/status_macros.h"
#include "cli/flags.h"
#include "cli/shared_machine.h"
#include "diagnosis/code_difference.h"
#include "suites/worker/run_context.h"

ABSL_FLAG(bool, binaries, false,
          "A and B are programs that take Google Benchmark's flags: they are "
          "interleaved until it is clear which benchmarks differ.");
ABSL_FLAG(bool, commits, false,
          "A and B are commits: --target or --build is built at both, then as "
          "--binaries.");
ABSL_FLAG(std::string, target, "",
          "Bazel label of the program to build, such as //path:my_benchmark.");
ABSL_FLAG(std::string, build, "",
          "Command that builds a commit, run by sh in a work tree of it, such "
          "as \"cmake -B build && cmake --build build\".");
ABSL_FLAG(std::string, run, "",
          "Command that measures once what --build made, run by sh in the same "
          "tree. It prints results that `optrail import` reads, or writes them "
          "to the file {out} or to files in the folder {out_dir}. {filter} is "
          "a regular expression of the benchmarks that are not clear yet.");
ABSL_FLAG(int32_t, max_rounds, 40,
          "Most rounds, at least 5; one is a fresh process of each program.");
ABSL_FLAG(absl::Duration, process_deadline, absl::Minutes(10),
          "A process that has not ended by then is killed and has failed.");
ABSL_FLAG(absl::Duration, build_deadline, absl::Hours(1),
          "A build that has not ended by then is killed and has failed.");

namespace optrail::cli {

absl::StatusOr<tracker::BuildOptions> BuildOptionsFromFlags(
    const std::vector<std::string>& args) {
  OPTRAIL_RETURN_IF_ERROR(CheckDuration("process_deadline",
                                        absl::GetFlag(FLAGS_process_deadline),
                                        absl::Milliseconds(1)));
  OPTRAIL_RETURN_IF_ERROR(CheckDuration("build_deadline",
                                        absl::GetFlag(FLAGS_build_deadline),
                                        absl::Milliseconds(1)));
  const int least = PairedTestOptions().min_rounds;
  if (absl::GetFlag(FLAGS_max_rounds) < least) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max_rounds=", absl::GetFlag(FLAGS_max_rounds),
                     ": expected at least ", least));
  }
  tracker::BuildOptions build;
  build.target = absl::GetFlag(FLAGS_target);
  build.args = args;
  build.build_command = absl::GetFlag(FLAGS_build);
  build.run_command = absl::GetFlag(FLAGS_run);
  build.build_deadline = absl::GetFlag(FLAGS_build_deadline);
  build.deadline = absl::GetFlag(FLAGS_process_deadline);
  return build;
}

std::vector<std::string> BuildFlags() {
  return {"target", "build", "run", "process_deadline", "build_deadline"};
}

bool HasRunCommand() {
  return !absl::GetFlag(FLAGS_target).empty() ||
         !absl::GetFlag(FLAGS_build).empty() ||
         !absl::GetFlag(FLAGS_run).empty();
}

std::string SuiteOfRuns() {
  const std::string suite = absl::GetFlag(FLAGS_suite);
  return suite.empty() ? "benchmarks" : suite;
}

absl::StatusOr<proto::Hardware> ThisMachine() {
  OPTRAIL_ASSIGN_OR_RETURN(suites::RunContext context,
                           suites::FindRunContext(proto::CPU, "", ""));
  return std::move(context.hardware);
}

absl::StatusOr<proto::Hardware> HardwareOfRuns() {
  OPTRAIL_ASSIGN_OR_RETURN(proto::Hardware hardware, ThisMachine());
  const std::string id = absl::GetFlag(FLAGS_hardware);
  if (!id.empty()) hardware.set_id(id);
  return hardware;
}

absl::StatusOr<int> CompareByRunning(tracker::AbCommand options,
                                     const std::vector<std::string>& arguments,
                                     bool commits) {
  const absl::string_view flag = commits ? "--commits" : "--binaries";
  if (arguments.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "compare ", flag, " takes A B [-- ARGUMENTS], but ", arguments.size(),
        arguments.size() == 1 ? " argument was" : " arguments were", " given"));
  }
  options.a = arguments[0];
  options.b = arguments[1];
  options.code_difference = diagnosis::BuiltDifference;
  OPTRAIL_ASSIGN_OR_RETURN(
      options.build,
      BuildOptionsFromFlags({arguments.begin() + 2, arguments.end()}));
  options.max_rounds = absl::GetFlag(FLAGS_max_rounds);
  const std::string policy = absl::GetFlag(FLAGS_policy);
  if (!policy.empty()) options.policy = UserPath(policy);
  options.outputs.markdown_out = UserPath(absl::GetFlag(FLAGS_markdown_out));
  options.record = absl::GetFlag(FLAGS_record);
  options.suite = SuiteOfRuns();
  OPTRAIL_ASSIGN_OR_RETURN(options.hardware, HardwareOfRuns());
  options.seed = absl::GetFlag(FLAGS_seed);
  options.quiet = absl::GetFlag(FLAGS_quiet);
  AdviseMetricIfShared();
  if (!commits) {
    options.a = UserPath(options.a);
    options.b = UserPath(options.b);
    return tracker::RunCompareBinaries(options, std::cout);
  }
  return tracker::RunCompareCommits(options, std::cout);
}

}  // namespace optrail::cli
