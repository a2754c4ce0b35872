#ifndef OPTRAIL_FLEET_SLURM_H_
#define OPTRAIL_FLEET_SLURM_H_

// Pilots as jobs of Slurm, which owns the machines, accounts and preemption:
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const std::vector<std::string> jobs,
//       SubmitPilots(2, {"--partition=gpu", "--exclusive"},
//                    {"/opt/optrail", "fleet", "pilot", "--history=..."}));
//
// A job that is preempted or whose node fails is queued again by Slurm; its
// task comes back into the queue of tasks when the lease is lost, or at once
// where the pilot could put it back (SIGTERM, a minute before the end).

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace optrail::fleet {

// Slurm's numbers of the jobs. `options` are sbatch's own. Unimplemented
// without Slurm, Unavailable where its controller does not answer.
absl::StatusOr<std::vector<std::string>> SubmitPilots(
    int count, const std::vector<std::string>& options,
    const std::vector<std::string>& pilot);

struct PilotJob {
  std::string id;
  bool runs = false;       // as far as Slurm knows; else it waits
  bool completes = false;  // it runs to its end, or is requeued
};

// InvalidArgument for options with which ListPilotJobs() would not find what
// SubmitPilots() submitted: arrays, other clusters, a comment.
absl::Status CheckOptionsToKeep(const std::vector<std::string>& options);

// This user's jobs that run or wait and were submitted with the same words.
// Those that end count as running until Slurm has done with them, as do those
// that it requeues. Errors as SubmitPilots().
absl::StatusOr<std::vector<PilotJob>> ListPilotJobs(
    const std::vector<std::string>& options,
    const std::vector<std::string>& pilot);
absl::Status CancelPilotJob(const std::string& job);

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_SLURM_H_
