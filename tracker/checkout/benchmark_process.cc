#include "tracker/checkout/benchmark_process.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/status_macros.h"

namespace optrail::tracker {
absl::Status CheckExecutable(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return FileError("opening", path, errno);
  if (S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is a folder: expected a program"));
  }
  if (access(path.c_str(), X_OK) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, " can't be executed: expected a program"));
  }
  return absl::OkStatus();
}

ProcessResult ResultOf(const Interruptible::End& end) {
  ProcessResult result;
  result.stderr_tail = LogTail(end.stderr_tail);
  if (end.exit.ok()) return result;
  result.failure = end.exit.ToString();
  result.outcome = end.exit.kind == ExitInfo::Kind::kTimedOut ? proto::TIMED_OUT
                                                              : proto::CRASHED;
  return result;
}

absl::StatusOr<ProcessResult> RunBenchmarkProcess(
    const BenchmarkProgram& program, const std::string& scratch_folder,
    Interruptible& interruptible) {
  const std::string results = JoinPath(scratch_folder, "results.json");
  unlink(results.c_str());  // of the process before
  std::vector<std::string> argv = {program.path, "--benchmark_repetitions=1"};
  argv.insert(argv.end(), program.args.begin(), program.args.end());
  argv.push_back(absl::StrCat("--benchmark_out=", results));
  argv.push_back("--benchmark_out_format=json");
  OPTRAIL_ASSIGN_OR_RETURN(
      const Interruptible::End end,
      interruptible.Run(argv, program.working_directory, program.deadline));
  ProcessResult result = ResultOf(end);
  if (!result.failure.empty()) return result;
  absl::StatusOr<std::string> json = ReadFile(results);
  if (json.ok() && !json->empty()) {
    result.files.push_back({"results.json", *std::move(json)});
  } else {
    result.failure =
        "wrote no results to --benchmark_out (does it take Google Benchmark's "
        "flags, and does a filter leave a benchmark?)";
    result.outcome = proto::CRASHED;
  }
  return result;
}

}  // namespace optrail::tracker
