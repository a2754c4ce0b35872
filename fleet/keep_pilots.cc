#include "fleet/keep_pilots.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/text/utf8.h"
#include "fleet/steady_now.h"

namespace optrail::fleet {
namespace {

constexpr int kMostFailedStarts = 3;

}  // namespace

PilotKeeper::PilotKeeper(JobQueue* queue, PilotsToKeep pilots,
                         absl::Duration patience)
    : queue_(*queue), pilots_(std::move(pilots)), patience_(patience) {}

absl::StatusOr<std::set<std::string>> PilotKeeper::Hear() {
  absl::Status reached = queue_.TakeBackLost();
  absl::StatusOr<std::set<std::string>> heard;
  if (reached.ok()) {
    heard = queue_.HeardOf(patience_);
    reached = heard.status();
  }
  const absl::Duration now = SteadyNow();
  // A shorter gap leaves pilots the time to speak again.
  const bool goes_on =
      reached.ok() && reached_.has_value() && now - *reached_ <= patience_ / 2;
  if (!goes_on) reached_since_ = now;
  reached_ = now;
  trusts_silence_ = now - *reached_since_ > patience_;
  if (reached.ok()) return heard;
  reached_.reset();
  return reached;
}

absl::StatusOr<bool> PilotKeeper::Counts(const PilotJob& job, bool is_heard,
                                         Changes* changes) {
  const bool was_cancelled = cancelled_.count(job.id) != 0;
  if (was_cancelled && (job.completes || !job.runs)) return false;
  if (!job.runs) {
    running_since_.erase(job.id);
    return true;
  }
  const absl::Duration now = SteadyNow();
  const absl::Duration since =
      running_since_.emplace(job.id, now).first->second;
  if (!trusts_silence_ || is_heard || now - since <= patience_) {
    return !was_cancelled;
  }
  // A slurmctld that is killed just then forgets that it was cancelled.
  const absl::Status cancelled = CancelPilotJob(job.id);
  if (absl::IsUnavailable(cancelled)) return cancelled;
  const std::string why =
      absl::StrCat(": it runs, and no pilot of it was heard of for ",
                   absl::FormatDuration(patience_));
  running_since_[job.id] = now;
  if (!cancelled.ok()) {
    changes->push_back(absl::StrCat("Slurm job ", job.id,
                                    " should be cancelled", why, "; ",
                                    cancelled.message()));
    return true;
  }
  cancelled_.insert(job.id);
  changes->push_back(absl::StrCat("Slurm job ", job.id, " is cancelled", why));
  return false;
}

void PilotKeeper::CountFailedStarts(const std::set<std::string>& listed,
                                    const std::set<std::string>& heard,
                                    Changes* changes) {
  const int before = failed_starts_;
  for (const std::string& id : listed) seen_.emplace(id, false);
  for (auto job = seen_.begin(); job != seen_.end();) {
    if (!job->second && heard.count(job->first) != 0) {
      job->second = true;
      failed_starts_ = 0;
      wait_ = absl::ZeroDuration();
      next_submit_.reset();
    }
    if (listed.count(job->first) != 0) {
      ++job;
      continue;
    }
    if (!job->second && cancelled_.count(job->first) == 0) ++failed_starts_;
    job = seen_.erase(job);
  }
  if (failed_starts_ < kMostFailedStarts || failed_starts_ <= before) return;
  wait_ = std::min(std::max(2 * wait_, patience_), 16 * patience_);
  next_submit_ = SteadyNow() + wait_;
  changes->push_back(absl::StrCat(
      "the last ", failed_starts_,
      " jobs ended before their pilots were heard of, none is submitted for ",
      absl::FormatDuration(wait_),
      "; next: read what they wrote, slurm-JOB.out by default"));
}

absl::StatusOr<std::vector<std::string>> PilotKeeper::Look() {
  OPTRAIL_ASSIGN_OR_RETURN(const std::set<std::string> heard, Hear());
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<PilotJob> jobs,
                           ListPilotJobs(pilots_.options, pilots_.command));
  Changes changes;
  std::set<std::string> listed;
  for (const PilotJob& job : jobs) listed.insert(job.id);
  CountFailedStarts(listed, heard, &changes);
  int there = 0;
  for (const PilotJob& job : jobs) {
    const absl::StatusOr<bool> counts =
        Counts(job, heard.count(job.id) != 0, &changes);
    // Earlier changes are told; the next look meets Slurm away again.
    if (!counts.ok() && changes.empty()) return counts.status();
    if (!counts.ok()) return changes;
    there += *counts;
  }
  const auto is_gone = [&](const std::string& id) {
    return listed.count(id) == 0;
  };
  for (auto id = cancelled_.begin(); id != cancelled_.end();) {
    id = is_gone(*id) ? cancelled_.erase(id) : std::next(id);
  }
  for (auto job = running_since_.begin(); job != running_since_.end();) {
    job = is_gone(job->first) ? running_since_.erase(job) : std::next(job);
  }
  if (there >= pilots_.count) return changes;
  if (next_submit_.has_value() && SteadyNow() < *next_submit_) return changes;
  // A pilot without tasks would end at once, and be submitted again.
  const absl::StatusOr<bool> has_tasks =
      queue_.MayGetTasks(pilots_.info, /*is_new=*/true);
  if (!has_tasks.ok() && changes.empty()) return has_tasks.status();
  if (!has_tasks.value_or(false)) return changes;
  for (; there < pilots_.count; ++there) {
    const absl::StatusOr<std::vector<std::string>> submitted =
        SubmitPilots(1, pilots_.options, pilots_.command);
    if (!submitted.ok() && changes.empty()) return submitted.status();
    if (!submitted.ok()) break;
    seen_.emplace((*submitted)[0], false);
    changes.push_back(absl::StrCat("Slurm job ", (*submitted)[0]));
  }
  return changes;
}

absl::Status KeepPilots(JobQueue& queue,
                        const std::vector<PilotsToKeep>& pilots,
                        const KeepTimes& times, std::ostream& out,
                        std::ostream& log) {
  std::vector<PilotKeeper> keepers;
  for (const PilotsToKeep& each : pilots) {
    OPTRAIL_RETURN_IF_ERROR(CheckOptionsToKeep(each.options));
    keepers.emplace_back(&queue, each, times.patience);
  }
  std::string said;
  while (true) {
    bool has_work = false;
    absl::Status away;
    for (size_t i = 0; i < keepers.size(); ++i) {
      const std::string& hardware = pilots[i].info.hardware_id;
      const auto changes = keepers[i].Look();
      const absl::StatusOr<bool> work = queue.HasWork(pilots[i].info);
      for (const absl::Status& status : {changes.status(), work.status()}) {
        if (!status.ok() && !MayPass(status)) return status;
        away.Update(status);
      }
      has_work |= work.value_or(true);
      if (!changes.ok()) continue;
      for (const std::string& change : *changes) {
        out << SanitiseText(change) << (hardware.empty() ? "" : " on ")
            << hardware << "\n"
            << std::flush;
      }
    }
    if (!has_work) return absl::OkStatus();
    if (!away.ok() && said != away.message()) {
      log << SanitiseText(away.message()) << "; trying again\n" << std::flush;
    }
    said = std::string(away.message());
    absl::SleepFor(times.between_looks);
  }
}

}  // namespace optrail::fleet
