#ifndef OPTRAIL_FLEET_EVALUATION_QUEUE_COUNTS_H_
#define OPTRAIL_FLEET_EVALUATION_QUEUE_COUNTS_H_

// QueueCounts tells what a queue holds, for an evaluation that kills the server
// now and then: a connection that broke is made anew at the next question.
//
//   QueueCounts counts(url);
//   while (!counts.AllAreDone()) absl::SleepFor(absl::Milliseconds(100));
//   OPTRAIL_RETURN_IF_ERROR(counts.AddTo({300, 3}, &report));
//
// One thread at a time.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fleet/evaluation/fault_run.h"
#include "tracker/history/postgres/postgres.h"

namespace optrail::fleet {

class QueueCounts {
 public:
  explicit QueueCounts(std::string url) : url_(std::move(url)) {}

  absl::StatusOr<std::vector<tracker::Postgres::Row>> Query(
      const std::string& sql);
  // The first value of the first row; NULL is 0.
  absl::StatusOr<double> Number(const std::string& sql);
  // Rows of what stands behind FROM.
  absl::StatusOr<int64_t> Count(const std::string& what);

  // False also where the server does not answer.
  bool AllAreDone();
  // Fills in the results of the tasks; `job_sizes` are the numbers of tasks
  // that jobs have.
  absl::Status AddTo(const std::vector<int>& job_sizes, FaultReport* report);

 private:
  const std::string url_;
  std::shared_ptr<tracker::Postgres> db_;
};

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_EVALUATION_QUEUE_COUNTS_H_
