#ifndef OPTRAIL_TRACKER_HISTORY_EVALUATION_GENERATE_HISTORY_H_
#define OPTRAIL_TRACKER_HISTORY_EVALUATION_GENERATE_HISTORY_H_

// Histories of any size for tests and benchmarks: plausible runs, fixed by a
// seed.
//
//   GenerateOptions options;
//   options.commits = 200;
//   OPTRAIL_RETURN_IF_ERROR(GenerateHistory(options, history));

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "tracker/history/history.h"
#include "tracker/proto/run.pb.h"

namespace optrail::tracker {

struct GenerateOptions {
  uint64_t seed = 1;
  int benchmarks = 1667;  // per hardware
  int hardware = 3;
  int commits = 200;  // each with a run per hardware
  int processes = 5;
  int samples = 20;  // per process
  // What real histories also hold: metrics beside time, crashes, contended
  // samples, aggregates, several runs of a commit, changed toolchains,
  // branches, runs of no commit.
  bool oddities = false;
};

// The runs one after another, in the order of their start times.
absl::Status GenerateRuns(const GenerateOptions& options,
                          const std::function<absl::Status(proto::Run)>& take);

// Records them all.
absl::Status GenerateHistory(const GenerateOptions& options,
                             const History& history);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_EVALUATION_GENERATE_HISTORY_H_
