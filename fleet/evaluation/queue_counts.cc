#include "fleet/evaluation/queue_counts.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace optrail::fleet {

using tracker::Postgres;

absl::StatusOr<std::vector<Postgres::Row>> QueueCounts::Query(
    const std::string& sql) {
  if (db_ == nullptr) {
    OPTRAIL_ASSIGN_OR_RETURN(db_, Postgres::Connect(url_));
  }
  auto rows = db_->Query(sql, {});
  if (!rows.ok()) db_.reset();  // the server was killed
  return rows;
}

absl::StatusOr<double> QueueCounts::Number(const std::string& sql) {
  OPTRAIL_ASSIGN_OR_RETURN(const auto rows, Query(sql));
  return std::stod(rows[0][0].value_or("0"));
}

absl::StatusOr<int64_t> QueueCounts::Count(const std::string& what) {
  OPTRAIL_ASSIGN_OR_RETURN(const double count,
                           Number("SELECT count(*) FROM " + what));
  return static_cast<int64_t>(count);
}

bool QueueCounts::AllAreDone() {
  const auto left = Count("optrail.tasks WHERE state <> 'done'");
  return left.ok() && *left == 0;
}

absl::Status QueueCounts::AddTo(const std::vector<int>& job_sizes,
                                FaultReport* report) {
  const std::pair<int64_t*, std::string> counts[] = {
      {&report->tasks, "optrail.tasks"},
      {&report->done, "optrail.tasks WHERE state = 'done'"},
      {&report->runs, "optrail.runs"},
      {&report->torn_jobs,
       absl::StrCat("(SELECT FROM optrail.jobs LEFT JOIN optrail.tasks t "
                    "USING (job) GROUP BY job HAVING count(t.task) NOT IN (",
                    absl::StrJoin(job_sizes, ", "), ")) x")},
      {&report->done_twice,
       "(SELECT FROM optrail.attempts WHERE is_result GROUP BY task "
       "HAVING count(*) > 1) x"},
  };
  for (const auto& [number, what] : counts) {
    OPTRAIL_ASSIGN_OR_RETURN(*number, Count(what));
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      report->seconds,
      Number("SELECT extract(epoch FROM max(finished) - min(started)) "
             "FROM optrail.tasks"));
  return absl::OkStatus();
}

}  // namespace optrail::fleet
