#ifndef OPTRAIL_TRACKER_CHECKOUT_BENCHMARK_PROCESS_H_
#define OPTRAIL_TRACKER_CHECKOUT_BENCHMARK_PROCESS_H_

// One process of a program that takes Google Benchmark's flags.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tracker/checkout/interruptible.h"
#include "tracker/checkout/process_result.h"

namespace optrail::tracker {

struct BenchmarkProgram {
  std::string path;
  // After --benchmark_repetitions=1, which makes Optrail's own suites measure
  // one process; so a later one wins.
  std::vector<std::string> args;
  std::string working_directory;
  absl::Duration deadline = absl::Minutes(10);
};

// OK if `path` is a file that can be executed; else NotFound or
// PermissionDenied, naming it.
absl::Status CheckExecutable(const std::string& path);

// A process that has ended: failed, or without results so far.
ProcessResult ResultOf(const Interruptible::End& end);

// Runs it once; its results pass through a file in `scratch_folder`. A program
// that crashes, exits with another code than 0, outlives its deadline or writes
// no results is a result.
absl::StatusOr<ProcessResult> RunBenchmarkProcess(
    const BenchmarkProgram& program, const std::string& scratch_folder,
    Interruptible& interruptible);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_CHECKOUT_BENCHMARK_PROCESS_H_
