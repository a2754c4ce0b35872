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

#include "absl/status/statusor.h"

namespace optrail::fleet {

// Slurm's numbers of the jobs. `options` are sbatch's own. Unimplemented
// without Slurm.
absl::StatusOr<std::vector<std::string>> SubmitPilots(
    int count, const std::vector<std::string>& options,
    const std::vector<std::string>& pilot);

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_SLURM_H_
