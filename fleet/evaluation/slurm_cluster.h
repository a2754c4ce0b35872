#ifndef OPTRAIL_FLEET_EVALUATION_SLURM_CLUSTER_H_
#define OPTRAIL_FLEET_EVALUATION_SLURM_CLUSTER_H_

// For evaluations: a Slurm of two nodes on this machine, whose daemons can be
// killed.
//
//   auto slurm = SlurmCluster::Start();
//   if (absl::IsUnimplemented(slurm.status())) ...  // not installed, or no
//   root OPTRAIL_RETURN_IF_ERROR((*slurm)->KillNode(0));
//   OPTRAIL_RETURN_IF_ERROR((*slurm)->RunNode(0));
//
// While it lives, SLURM_CONF of this process names its configuration, so that
// sbatch and squeue find it. Nobody is authenticated. Its jobs end with it.

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/process/subprocess.h"

namespace optrail::fleet {

class SlurmCluster {
 public:
  static constexpr int kNodes = 2;

  static absl::StatusOr<std::unique_ptr<SlurmCluster>> Start();
  ~SlurmCluster();

  const std::string& folder() const { return folder_; }

  // kill -9 of slurmctld, or of a node's slurmd; jobs go on.
  absl::Status KillController();
  absl::Status RunController();
  absl::Status KillNode(int node);
  absl::Status RunNode(int node);

  // Jobs that run or wait.
  absl::StatusOr<int> CountJobs() const;
  // Its jobs and nodes with their states and reasons, for people.
  std::string Describe() const;
  // Copies the logs of its daemons and Describe() into `folder`.
  absl::Status KeepLogs(const std::string& folder) const;

 private:
  explicit SlurmCluster(std::string folder) : folder_(std::move(folder)) {}
  absl::Status Configure() const;
  absl::Status WaitUntilReady() const;

  const std::string folder_;
  std::unique_ptr<Subprocess> controller_;
  std::unique_ptr<Subprocess> nodes_[kNodes];
};

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_EVALUATION_SLURM_CLUSTER_H_
