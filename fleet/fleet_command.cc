#include "fleet/fleet_command.h"

#include <ostream>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/open_metrics.h"
#include "tracker/command/command_support.h"

namespace optrail::fleet {
namespace {

void PrintStatus(const FleetStatus& status, OutputFormat format,
                 std::ostream& out) {
  Table jobs({{"job", Align::kRight},
              {"name", Align::kLeft, "", Clip::kNever},
              {"queued", Align::kRight},
              {"running", Align::kRight},
              {"done", Align::kRight},
              {"failed", Align::kRight},
              {"cancelled", Align::kRight},
              {"estimated left", Align::kRight, "estimated_left_s"},
              {"submitted by"}});
  for (const JobStatus& job : status.jobs) {
    jobs.AddRow({Cell::Integer(job.job), job.name, Cell::Integer(job.queued),
                 Cell::Integer(job.running), Cell::Integer(job.done),
                 Cell::Integer(job.failed), Cell::Integer(job.cancelled),
                 job.estimated_left.has_value()
                     ? Cell::Number(absl::ToDoubleSeconds(*job.estimated_left),
                                    absl::FormatDuration(absl::Trunc(
                                        *job.estimated_left, absl::Seconds(1))))
                     : Cell::None(),
                 job.submitted_by});
  }
  tracker::PrintTable(jobs, format, out);
  if (!tracker::IsForPeople(format)) return;
  Table pilots({{"pilot", Align::kLeft, "", Clip::kNever},
                {"hardware"},
                {"Slurm job"},
                {"running", Align::kRight},
                {"silent", Align::kRight},
                {"state"}});
  for (const PilotStatus& pilot : status.pilots) {
    pilots.AddRow(
        {pilot.info.id, pilot.info.hardware_id, pilot.info.slurm_job,
         Cell::Integer(pilot.running),
         absl::FormatDuration(absl::Trunc(pilot.silent, absl::Seconds(1))),
         pilot.is_draining ? "draining" : "at work"});
  }
  out << "\n";
  tracker::PrintTable(pilots, format, out);
}

}  // namespace

std::string OpenMetricsText(const FleetStatus& status) {
  JobStatus all;
  for (const JobStatus& job : status.jobs) {
    all.queued += job.queued;
    all.running += job.running;
    all.done += job.done;
    all.failed += job.failed;
    all.cancelled += job.cancelled;
  }
  int64_t busy = 0;
  for (const PilotStatus& pilot : status.pilots) busy += pilot.running > 0;
  OpenMetricsFamily tasks("optrail_fleet_tasks", "gauge", "",
                          "Tasks of the newest 200 jobs");
  OpenMetricsFamily pilots("optrail_fleet_pilots", "gauge", "",
                           "Pilots heard of within the last hour");
  OpenMetricsFamily lost("optrail_fleet_leases_lost", "gauge", "",
                         "Times that a pilot was silent for a whole lease");
  OpenMetricsFamily finished("optrail_fleet_finished_last_hour", "gauge", "",
                             "Tasks done within the last hour");
  OpenMetricsFamily measured("optrail_fleet_measurements_last_hour", "gauge",
                             "",
                             "Results of runs that began within the last hour, "
                             "with a value and without one");
  OpenMetricsFamily disturbed("optrail_fleet_disturbed_share", "gauge", "",
                              "Share of the results of the last hour that "
                              "were too disturbed to have a value");
  OpenMetricsFamily verdicts("optrail_fleet_verdicts", "gauge", "",
                             "Series by the verdict of the newest report");
  const auto add = [](OpenMetricsFamily& family, absl::string_view state,
                      int64_t count) {
    family.Add("", state.empty() ? "" : OpenMetricsLabel("state", state),
               static_cast<double>(count));
  };
  add(tasks, "queued", all.queued);
  add(tasks, "running", all.running);
  add(tasks, "done", all.done);
  add(tasks, "failed", all.failed);
  add(tasks, "cancelled", all.cancelled);
  add(pilots, "busy", busy);
  add(pilots, "idle", static_cast<int64_t>(status.pilots.size()) - busy);
  add(lost, "", status.leases_lost);
  add(finished, "", status.finished_last_hour);
  measured.Add("", OpenMetricsLabel("value", "yes"),
               static_cast<double>(status.measured_last_hour));
  measured.Add("", OpenMetricsLabel("value", "no"),
               static_cast<double>(status.without_value_last_hour));
  const int64_t results =
      status.measured_last_hour + status.without_value_last_hour;
  if (results > 0) {
    disturbed.Add("", "",
                  static_cast<double>(status.disturbed_last_hour) /
                      static_cast<double>(results));
  }
  for (const auto& [verdict, series] : status.verdicts) {
    verdicts.Add("", OpenMetricsLabel("verdict", verdict),
                 static_cast<double>(series));
  }
  return absl::StrCat(tasks.text(), pilots.text(), lost.text(), finished.text(),
                      measured.text(), disturbed.text(), verdicts.text(),
                      "# EOF\n");
}

absl::StatusOr<int> RunFleetStatus(const FleetStatusCommand& options,
                                   std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(JobQueue queue, JobQueue::Open(options.history));
  OPTRAIL_ASSIGN_OR_RETURN(const FleetStatus status, queue.Status());
  if (!options.is_open_metrics) {
    PrintStatus(status, options.format, out);
  } else if (options.file.empty() || options.file == "-") {
    out << OpenMetricsText(status);
  } else {
    OPTRAIL_RETURN_IF_ERROR(WriteOutput(options.file, OpenMetricsText(status)));
  }
  return 0;
}

}  // namespace optrail::fleet
