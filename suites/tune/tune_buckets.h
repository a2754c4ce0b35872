#ifndef OPTRAIL_SUITES_TUNE_TUNE_BUCKETS_H_
#define OPTRAIL_SUITES_TUNE_TUNE_BUCKETS_H_

// Tunes a range of shapes: a few configs and the boundaries between them.
// `optrail tune --shape=m=1..4096,n=4096,k=4096/f32` is RunTuneBuckets().
//
// The shape in the middle of the range is tuned. At the corners and at random
// shapes inside a session searches as well and defends this config: it stays
// unless another one is proven better by more than `most_loss`. Where it stays
// everywhere, the range is its bucket (tuning/store/bucket.h). Else the range
// is cut in two, and each half is tuned so. A range that is too small to be cut
// is the default's bucket, if that holds everywhere; else each of its shapes is
// tuned, if they are few.
// docs/reference/tuned_configs.md.

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "base/text/table.h"
#include "suites/tune/tune_driver.h"
#include "suites/worker/run_context.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/config.pb.h"
#include "tuning/store/bucket.h"

namespace optrail::suites {

struct TuneBucketsCommand {
  RunContext context;
  // Its shape is not looked at.
  TaskSelection selection;
  tuning::Bucket range;
  // Budgets are those of each session, but the total time, which ends it all:
  // each task (a backend, a number of threads) gets an equal share of what the
  // tasks before it have left. The seed draws the shapes inside, too.
  TuneDriverOptions tune;
  double most_loss = .03;  // of time
  // For each doubling of a bucket's sizes, and at least as many.
  int random_shapes = 4;
  OutputFormat format = OutputFormat::kTable;
  // Tunes one task, and defends the incumbent where there is one. nullptr:
  // TuneTasks(); tests answer without measuring.
  std::function<absl::StatusOr<TuneSummary>(
      const TaskEntry&, const absl::optional<proto::Config>& incumbent)>
      tune_one = nullptr;
  std::function<absl::Time()> now = absl::Now;  // tests have a clock of theirs
};

struct CheckedConfig {
  bool holds = false;
  // The share of time that it loses against the best that a session found; 0
  // where that is this one.
  double loss = 0;
  std::string why;  // it does not hold
  // The same of the default; 1 where no session said so.
  double default_loss = 1;
};

// Tunes the task with the command's options, and says what `config` (nullopt:
// the default) loses.
absl::StatusOr<CheckedConfig> CheckConfig(
    const TuneBucketsCommand& command, const TaskEntry& task,
    const absl::optional<proto::Config>& config);

// Returns the tasks that have the range: one for each backend and number of
// threads that are selected. NotFound if there is none, Unavailable and the
// like if one can't run here.
absl::StatusOr<std::vector<TaskEntry>> TasksOfRange(
    const TaskSelection& selection, const tuning::Bucket& range,
    const proto::Hardware& hardware);

// InvalidArgument for options that mean nothing for a range: a total of trials,
// and objectives other than time.
absl::Status CheckRangeOptions(const tuning::Bucket& range,
                               const TuneDriverOptions& options);

// How many sessions check a whole range that holds. Ranges that are cut take up
// to twice as many.
int SessionsOf(const tuning::Bucket& range, int random_shapes);

// Exit code 1: a part of the range could not be verified. What is verified is
// stored at once; the same command goes on with the rest.
absl::StatusOr<int> RunTuneBuckets(const TuneBucketsCommand& command,
                                   std::ostream& out, std::ostream& notes);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_TUNE_BUCKETS_H_
