#ifndef OPTRAIL_TRACKER_AB_ROUNDS_H_
#define OPTRAIL_TRACKER_AB_ROUNDS_H_

// RunRounds compares two programs by running them interleaved until it is clear
// which benchmarks differ.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const AbResult result,
//                            RunRounds(options, measure));
//   std::cout << ComparisonTable(result.comparison, false).ToText();
//
// A round is one fresh process of each program, in random order, balanced over
// every two rounds. RunRounds schedules rounds and stamps what they measured as
// pairs; after each round it asks Compare(), as everybody does of the same
// runs. The rounds end when all verdicts are clear at once.
//
// It starts no processes itself: `measure` does.

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "tracker/checkout/process_result.h"
#include "tracker/compare/compare.h"

namespace optrail::tracker {

enum class Program { kA, kB };  // A is the base

using MeasureFunction =
    std::function<absl::StatusOr<ProcessResult>(Program program, int round)>;

struct AbOptions {
  CompareOptions compare;
  int max_rounds = 40;
  uint64_t seed = 1;
  // Called after every round with the rounds done, a forecast of all rounds,
  // and how many of the compared benchmarks are still open.
  std::function<void(int done, int forecast, int open, int compared)> progress;
  // Called after a round with the names of the benchmarks that are still open,
  // at least one: the next rounds need not measure any other.
  std::function<void(const std::set<std::string>& names)> narrow;
};

struct AbResult {
  Comparison comparison;
  int rounds = 0;
  // Verdicts that count as worse: slower, crashed, wrong result, missing.
  int worse = 0;
  int undecided = 0;
  std::string candidate_failure;  // B failed: how
  // The readings, one Measurement per round: Measurement.round says which.
  // Without id, suite, commit; times and the pairing id only tell the sides
  // apart.
  proto::Run base, candidate;
};

// Errors: `measure`'s; InvalidArgument for options out of range and for output
// that `optrail import` does not read; FailedPrecondition, with the end of its
// standard error, where A fails: there is nothing to compare with.
absl::StatusOr<AbResult> RunRounds(const AbOptions& options,
                                   const MeasureFunction& measure);

// Runs A once, where both sides are equal and there is nothing to compare. The
// run may hold results that failed. The errors are those of a first round of
// RunRounds.
absl::StatusOr<proto::Run> MeasureOnce(const MeasureFunction& measure);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_AB_ROUNDS_H_
