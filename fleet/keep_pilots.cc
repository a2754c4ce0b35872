#include "fleet/keep_pilots.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "fleet/slurm.h"

namespace optrail::fleet {
namespace {

// The clock on the wall may jump.
absl::Duration Now() { return absl::Nanoseconds(Clock::Real()->NowNs()); }

}  // namespace

PilotKeeper::PilotKeeper(JobQueue* queue, PilotsToKeep pilots,
                         absl::Duration patience)
    : queue_(*queue), pilots_(std::move(pilots)), patience_(patience) {}

absl::StatusOr<std::vector<std::string>> PilotKeeper::Look() {
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<PilotJob> jobs,
                           ListPilotJobs(pilots_.options, pilots_.command));
  OPTRAIL_ASSIGN_OR_RETURN(const PilotsHeardOf heard,
                           queue_.HeardOf(patience_));
  std::vector<std::string> changes;
  std::map<std::string, absl::Duration> running_since;
  int there = 0;
  for (const PilotJob& job : jobs) {
    if (job.runs) {
      const auto known = running_since_.find(job.id);
      const absl::Duration since =
          known == running_since_.end() ? Now() : known->second;
      if (heard.is_complete && heard.slurm_jobs.count(job.id) == 0 &&
          Now() - since > patience_) {
        OPTRAIL_RETURN_IF_ERROR(CancelPilotJob(job.id));
        changes.push_back(
            absl::StrCat("Slurm job ", job.id,
                         " is cancelled: it runs, and no pilot of it "
                         "was heard of for ",
                         absl::FormatDuration(patience_)));
        continue;
      }
      running_since[job.id] = since;
    }
    ++there;
  }
  running_since_ = std::move(running_since);
  if (there >= pilots_.count) return changes;
  // A pilot without tasks would end at once, and be submitted again.
  OPTRAIL_ASSIGN_OR_RETURN(const bool has_tasks,
                           queue_.MayGetTasks(pilots_.info, true));
  if (!has_tasks) return changes;
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<std::string> submitted,
      SubmitPilots(pilots_.count - there, pilots_.options, pilots_.command));
  for (const std::string& job : submitted) {
    changes.push_back(absl::StrCat("Slurm job ", job));
  }
  return changes;
}

}  // namespace optrail::fleet
