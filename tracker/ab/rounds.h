#ifndef OPTRAIL_TRACKER_AB_ROUNDS_H_
#define OPTRAIL_TRACKER_AB_ROUNDS_H_

// RunRounds compares two programs by running them in turns until it is clear
// which benchmarks differ.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const AbResult result,
//       RunRounds(options, [&](Program program, int round) { ... }));
//   std::cout << ComparisonTable(result.comparison, false).ToText();
//
// A round is one fresh process of each program, in random order, balanced over
// every two rounds; what the machine does to both cancels in their ratio, which
// is the round's one piece of evidence per benchmark. After each round every
// benchmark is judged by the test of paired_test.h, which pays for these looks;
// the rounds end when all verdicts are clear at once.
//
// It starts no processes itself: `measure` does.

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/paired_test.h"
#include "tracker/compare/compare.h"

namespace optrail::tracker {

enum class Program { kA, kB };  // A is the base

// What one process gave.
struct ProcessResult {
  // Google Benchmark's JSON; empty if it failed.
  std::string json;
  // "killed by signal 11 (Segmentation fault)"; empty if it did not fail.
  std::string failure;
  proto::Outcome outcome = proto::OK;  // CRASHED, TIMED_OUT, ...
  std::string stderr_tail;
};

using MeasureFunction =
    std::function<absl::StatusOr<ProcessResult>(Program program, int round)>;

struct AbOptions {
  // `test.false_alarm_rate` is of the whole comparison: each benchmark gets its
  // share (Bonferroni's).
  PairedTestOptions test;
  int max_rounds = 40;
  uint64_t seed = 1;
  // As CompareOptions::threshold: which benchmarks and metrics; effects are
  // those of `test`. Null: time.
  std::function<bool(absl::string_view name, absl::string_view metric)> wanted;
  // Called after every round with the rounds done, a forecast of all rounds,
  // and how many of the compared benchmarks are still open.
  std::function<void(int done, int forecast, int open, int compared)> progress;
};

struct AbResult {
  Comparison comparison;
  int rounds = 0;
  // Verdicts that count as worse: slower, crashed, wrong result, missing.
  int worse = 0;
  int undecided = 0;
  std::string candidate_failure;  // B failed: how
};

// Errors: `measure`'s; InvalidArgument for options out of range and for output
// that is no Google Benchmark JSON; FailedPrecondition, with the end of its
// standard error, where A fails: there is nothing to compare with.
absl::StatusOr<AbResult> RunRounds(const AbOptions& options,
                                   const MeasureFunction& measure);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_AB_ROUNDS_H_
