// `optrail compare --binaries A B` and `--commits A B`: programs run in turns.

#include "cli/ab.h"

#include <iostream>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/flags.h"

ABSL_FLAG(bool, binaries, false,
          "A and B are programs that take Google Benchmark's flags: they are "
          "run in turns until it is clear which benchmarks differ.");
ABSL_FLAG(bool, commits, false,
          "A and B are commits: --target is built at both, then as "
          "--binaries.");
ABSL_FLAG(std::string, target, "",
          "Label of the program to build, such as //path:my_benchmark.");
ABSL_FLAG(int32_t, max_rounds, 40,
          "Most rounds; one is a fresh process of each program.");
ABSL_FLAG(absl::Duration, process_deadline, absl::Minutes(10),
          "A process that has not ended by then is killed and has failed.");
ABSL_FLAG(absl::Duration, build_deadline, absl::Hours(1),
          "A build that has not ended by then is killed and has failed.");

namespace optrail::cli {

absl::Status CheckDeadlines() {
  OPTRAIL_RETURN_IF_ERROR(CheckDuration("process_deadline",
                                        absl::GetFlag(FLAGS_process_deadline),
                                        absl::Milliseconds(1)));
  return CheckDuration("build_deadline", absl::GetFlag(FLAGS_build_deadline),
                       absl::Milliseconds(1));
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
  options.args.assign(arguments.begin() + 2, arguments.end());
  OPTRAIL_RETURN_IF_ERROR(CheckDeadlines());
  options.target = absl::GetFlag(FLAGS_target);
  options.max_rounds = absl::GetFlag(FLAGS_max_rounds);
  options.deadline = absl::GetFlag(FLAGS_process_deadline);
  options.build_deadline = absl::GetFlag(FLAGS_build_deadline);
  options.seed = absl::GetFlag(FLAGS_seed);
  options.quiet = absl::GetFlag(FLAGS_quiet);
  if (!commits) {
    if (!options.target.empty()) {
      return absl::InvalidArgumentError(
          "--target is for compare --commits: --binaries builds nothing");
    }
    options.a = UserPath(options.a);
    options.b = UserPath(options.b);
    return tracker::RunCompareBinaries(options, std::cout);
  }
  return tracker::RunCompareCommits(options, std::cout);
}

}  // namespace optrail::cli
