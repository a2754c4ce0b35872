// What a call that tunes a range of shapes is about: its tasks and sessions.

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "suites/tune/bucket_parts.h"
#include "suites/tune/tune_buckets.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {

using tuning::Bucket;
using tuning::CanonicalText;

int RandomShapes(const Bucket& range, int for_each_doubling) {
  return for_each_doubling *
         std::max(1, static_cast<int>(std::ceil(range.Doublings())));
}

int SessionsOf(const Bucket& range, int random_shapes) {
  return 1 + static_cast<int>(range.Corners().size()) +
         RandomShapes(range, random_shapes);
}

absl::StatusOr<std::vector<TaskEntry>> TasksOfRange(
    const TaskSelection& selection, const Bucket& range,
    const proto::Hardware& hardware) {
  TaskSelection of_lowest = selection;
  const std::string lowest = CanonicalText(range.Corners()[0]);
  of_lowest.shape_regex = lowest;
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<TaskEntry> tasks,
                           SelectTasks(of_lowest, hardware));
  tasks.erase(std::remove_if(tasks.begin(), tasks.end(),
                             [&](const TaskEntry& task) {
                               return CanonicalText(task.task.shape()) !=
                                      lowest;
                             }),
              tasks.end());
  for (const TaskEntry& task : tasks) OPTRAIL_RETURN_IF_ERROR(task.available);
  if (tasks.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "--shape=", range.Text(), ": no operator has the shape ", lowest,
        " in this very text; expected no attribute that has its "
        "default"));
  }
  return tasks;
}

absl::Status CheckRangeOptions(const Bucket& range,
                               const TuneDriverOptions& options) {
  if (options.total_trials == 0 && options.tune.objectives.empty()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--shape=", range.Text(),
      ": a range is tuned for time, with --trials or --time_budget for each "
      "session and --total_time for all; expected no --total_trials and no "
      "--objective"));
}

}  // namespace optrail::suites
