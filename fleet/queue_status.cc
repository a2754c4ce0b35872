// The queue answers people, dashboards and those who start pilots.

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "fleet/queue.h"
#include "fleet/row_values.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::fleet {

absl::StatusOr<std::set<std::string>> JobQueue::HeardOf(
    absl::Duration patience) {
  // A pilot that runs a task says so by its lease.
  OPTRAIL_ASSIGN_OR_RETURN(
      const Rows rows,
      Query("SELECT DISTINCT slurm_job FROM optrail.pilots p "
            "WHERE slurm_job IS NOT NULL AND (seen > now() - "
            "make_interval(secs => $1) OR EXISTS (SELECT FROM optrail.tasks t "
            "WHERE t.pilot = p.pilot AND t.state = 'leased' AND "
            "t.lease_until > now() - make_interval(secs => $1)))",
            {absl::StrCat(absl::ToDoubleSeconds(patience))}));
  std::set<std::string> slurm_jobs;
  for (const auto& row : rows) slurm_jobs.insert(Text(row[0]));
  return slurm_jobs;
}

absl::StatusOr<bool> JobQueue::HasWork(const PilotInfo& pilot) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const Rows rows,
      Query("SELECT EXISTS (SELECT FROM optrail.tasks WHERE "
            "(state = 'leased' OR (state IN ('waiting', 'queued') AND "
            "(deadline IS NULL OR deadline > now()))) AND "
            "hardware_id IN ('', $1) AND ($2 OR NOT needs_repository))",
            {pilot.hardware_id, pilot.has_repository ? "t" : "f"}));
  return !rows.empty() && Text(rows[0][0]) == "t";
}

absl::Status JobQueue::AddJobs(FleetStatus* status) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const Rows jobs,
      Query("SELECT job, name, count(*) FILTER (WHERE state IN ('waiting', "
            "'queued')), "
            "count(*) FILTER (WHERE state = 'leased'), "
            "count(*) FILTER (WHERE state = 'done'), "
            "count(*) FILTER (WHERE state = 'failed'), "
            "count(*) FILTER (WHERE state = 'cancelled'), "
            "avg(extract(epoch FROM finished - started)) "
            "FILTER (WHERE state = 'done'), submitted_by "
            "FROM optrail.jobs JOIN optrail.tasks USING (job) "
            "GROUP BY job, name, submitted_by ORDER BY job DESC LIMIT 200",
            {}));
  for (const auto& row : jobs) {
    JobStatus job = {Number(row[0]), Text(row[1]),   Number(row[2]),
                     Number(row[3]), Number(row[4]), Number(row[5]),
                     Number(row[6]), absl::nullopt,  Text(row[8])};
    if (row[7].has_value() && job.running > 0) {
      job.estimated_left = SecondsOf(row[7]) *
                           static_cast<double>(job.queued + job.running) /
                           static_cast<double>(job.running);
    }
    status->jobs.push_back(std::move(job));
  }
  return absl::OkStatus();
}

absl::Status JobQueue::AddPilots(FleetStatus* status) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const Rows pilots,
      Query("SELECT p.pilot, host, p.hardware_id, slurm_job, draining, "
            "count(task), extract(epoch FROM now() - seen) "
            "FROM optrail.pilots p LEFT JOIN optrail.tasks t "
            "ON t.pilot = p.pilot AND t.state = 'leased' "
            "WHERE seen > now() - interval '1 hour' "
            "GROUP BY p.pilot ORDER BY p.pilot",
            {}));
  for (const auto& row : pilots) {
    status->pilots.push_back(
        {{Text(row[0]), Text(row[1]), Text(row[2]), Text(row[3])},
         Text(row[4]) == "t",
         Number(row[5]),
         SecondsOf(row[6])});
  }
  return absl::OkStatus();
}

// Counts of tasks, measurements and verdicts.
absl::Status JobQueue::AddCounts(FleetStatus* status) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const Rows counts,
      Query("SELECT coalesce(sum(leases_lost), 0), count(*) FILTER (WHERE "
            "state = 'done' AND finished > now() - interval '1 hour') "
            "FROM optrail.tasks",
            {}));
  if (!counts.empty()) {
    status->leases_lost = Number(counts[0][0]);
    status->finished_last_hour = Number(counts[0][1]);
  }
  // The first of these runs bounds what is read of the index.
  OPTRAIL_ASSIGN_OR_RETURN(
      const Rows measured,
      Query("WITH recent AS (SELECT run FROM optrail.runs WHERE "
            "started_unix_ns > 1e9 * extract(epoch FROM now() - interval "
            "'1 hour')) "
            "SELECT count(value), count(*) - count(value), "
            "count(*) FILTER (WHERE outcome = $1) "
            "FROM optrail.observations JOIN recent USING (run) "
            "WHERE run >= (SELECT min(run) FROM recent)",
            {absl::StrCat(static_cast<int>(proto::CONTENDED))}));
  if (!measured.empty()) {
    status->measured_last_hour = Number(measured[0][0]);
    status->without_value_last_hour = Number(measured[0][1]);
    status->disturbed_last_hour = Number(measured[0][2]);
  }
  OPTRAIL_ASSIGN_OR_RETURN(const Rows verdicts,
                           Query("SELECT verdict, count(*) "
                                 "FROM optrail.judgements GROUP BY verdict",
                                 {}));
  for (const auto& row : verdicts) {
    status->verdicts[Text(row[0])] = Number(row[1]);
  }
  return absl::OkStatus();
}

absl::StatusOr<FleetStatus> JobQueue::Status() {
  FleetStatus status;
  OPTRAIL_RETURN_IF_ERROR(AddJobs(&status));
  OPTRAIL_RETURN_IF_ERROR(AddPilots(&status));
  OPTRAIL_RETURN_IF_ERROR(AddCounts(&status));
  return status;
}

}  // namespace optrail::fleet
