#ifndef OPTRAIL_CARBON_JOBS_CSV_H_
#define OPTRAIL_CARBON_JOBS_CSV_H_

// The jobs of `optrail carbon plan`, as CSV, turned into hours (plan.h).
//
//   OPTRAIL_ASSIGN_OR_RETURN(const JobsFile jobs, ReadJobs(path, history,
//   model)); problem.jobs = jobs.jobs;  // hours count from jobs.start_unix_s
//
// Columns: id, watts, hours, release, deadline (RFC 3339), preemptible (yes or
// no), and optionally session: a tuning session or run of the history, from
// which watts and hours come where they are empty.
//
// Hours are whole: a job of 2.5 h takes three, with its energy spread over
// them. It starts in the first whole hour after its release and ends in the
// last one before its deadline. Hours begin `hour_phase_s` after those of UTC
// (Grid::HourPhaseS), as clocks of some zones do.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "carbon/plan.h"
#include "carbon/power_model.h"
#include "tracker/history/history.h"

namespace optrail::carbon {

// A job as its line of the file, or its session, says it. PlanJob has whole
// hours, and the mean power over them.
struct StatedJob {
  double watts = 0, hours = 0;
  int64_t release_unix_s = 0, deadline_unix_s = 0;
  std::string session;     // power or duration are of this record, or ""
  bool estimated = false;  // its power comes from there and was not metered
};

struct JobsFile {
  int64_t start_unix_s = 0;  // of hour 0
  int hours = 0;             // until the last deadline
  std::vector<PlanJob> jobs;
  std::vector<StatedJob> stated;  // likewise
  int from_history = 0;          // jobs whose power or duration came from there
  bool of_device_watts = false;  // the power of one is PowerModel::device_watts
};

absl::StatusOr<JobsFile> ParseJobs(absl::string_view csv,
                                   const std::string& name,
                                   const tracker::History& history,
                                   const PowerModel& model,
                                   int64_t hour_phase_s = 0);
absl::StatusOr<JobsFile> ReadJobs(const std::string& path,
                                  const tracker::History& history,
                                  const PowerModel& model,
                                  int64_t hour_phase_s = 0);

}  // namespace optrail::carbon

#endif  // OPTRAIL_CARBON_JOBS_CSV_H_
