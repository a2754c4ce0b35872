#include "fleet/evaluation/fault_tasks.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"
#include "base/testing/wrong_clock.h"
#include "tracker/history/evaluation/generate_history.h"
#include "tracker/history/history.h"

namespace optrail::fleet {

absl::StatusOr<std::vector<std::string>> PrepareTasks(
    const std::string& folder, int count, absl::Duration task_time) {
  tracker::GenerateOptions options;
  options.benchmarks = 2;
  options.hardware = 1;
  options.commits = count;
  int next = 0;
  OPTRAIL_RETURN_IF_ERROR(
      tracker::GenerateRuns(options, [&](proto::Run run) -> absl::Status {
        OPTRAIL_ASSIGN_OR_RETURN(
            const tracker::History history,
            tracker::History::Open(absl::StrCat(folder, "/", next++)));
        return history.AppendRun(run);
      }));
  const std::string script = absl::StrCat(folder, "/copy.sh");
  OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(
      script,
      absl::StrCat("env; id -u; sleep ", absl::ToDoubleSeconds(task_time), "\n",
                   "from=${2#--suite=}\n"
                   "for a in \"$@\"; do case $a in\n"
                   "--history=*) to=${a#*=};; esac; done\n"
                   "cp -r ",
                   folder, "/$from \"$to\"\n")));
  OPTRAIL_RETURN_IF_ERROR(RunCommand({"chmod", "-R", "a+rX", folder}).status());
  return std::vector<std::string>{"sh", script};
}

std::vector<std::string> ArgumentsOf(const PilotOptions& options,
                                     absl::Duration clock_error) {
  std::vector<std::string> arguments = {
      options.url,
      options.folder,
      options.run_as,
      absl::StrCat(absl::ToInt64Milliseconds(options.lease)),
      absl::StrCat(absl::ToInt64Milliseconds(options.poll)),
      absl::StrCat(absl::ToInt64Milliseconds(clock_error))};
  arguments.insert(arguments.end(), options.program.begin(),
                   options.program.end());
  return arguments;
}

absl::StatusOr<PilotOptions> PilotOptionsOf(
    const std::vector<std::string>& arguments) {
  PilotOptions options;
  int64_t lease_ms = 0, poll_ms = 0, clock_error_ms = 0;
  if (arguments.size() < 7 || !absl::SimpleAtoi(arguments[3], &lease_ms) ||
      !absl::SimpleAtoi(arguments[4], &poll_ms) ||
      !absl::SimpleAtoi(arguments[5], &clock_error_ms)) {
    return absl::InvalidArgumentError(
        "expected URL FOLDER USER LEASE_MS POLL_MS CLOCK_ERROR_MS PROGRAM...");
  }
  SetWallClockError(absl::Milliseconds(clock_error_ms));
  options.url = arguments[0];
  options.folder = arguments[1];
  options.run_as = arguments[2];
  options.lease = absl::Milliseconds(lease_ms);
  options.poll = absl::Milliseconds(poll_ms);
  options.info = {"", "host", "hw", ""};
  // Pilots of `optrail fleet up` end so, too: none stays to take back what is
  // lost.
  options.until_idle = true;
  options.program.assign(arguments.begin() + 6, arguments.end());
  return options;
}

std::vector<std::string> CommandsOf(int first, int count) {
  std::vector<std::string> commands;
  for (int i = first; i < first + count; ++i) {
    commands.push_back(absl::StrCat("bench --suite=", i));
  }
  return commands;
}

}  // namespace optrail::fleet
