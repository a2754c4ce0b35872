#ifndef OPTRAIL_FLEET_KEEP_PILOTS_H_
#define OPTRAIL_FLEET_KEEP_PILOTS_H_

// Keeps the number of pilots in Slurm while there is work: submits pilots for
// those that have ended, and replaces jobs that Slurm calls running although
// nobody takes tasks there.
//
//   const PilotInfo info = {"", "", "nvidia-h200", ""};
//   PilotKeeper keeper(&queue, {2, {"--partition=gpu"}, command, info},
//                      absl::Minutes(2));
//   while (*queue.HasWork(info)) {
//     OPTRAIL_ASSIGN_OR_RETURN(const auto changes, keeper.Look());
//     for (const std::string& change : changes) std::cerr << change << "\n";
//     absl::SleepFor(absl::Seconds(15));
//   }
//
// A job whose launch is lost, such as by a slurmd that is killed just then,
// stays "running" in Slurm until that node registers again, which may be half
// an hour later. The queue knows better: a pilot says that it is there from its
// first second on.
//
// Errors: Unavailable where the database or Slurm's controller is away; look
// again later. Thread safety: one thread at a time.

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "fleet/queue.h"

namespace optrail::fleet {

struct PilotsToKeep {
  int count = 1;
  std::vector<std::string> options;  // of sbatch
  std::vector<std::string> command;  // of a pilot
  PilotInfo info = {};               // which tasks these pilots may take
};

class PilotKeeper {
 public:
  // `queue` outlives it. A job that has run for `patience` and was not heard of
  // for as long is replaced.
  PilotKeeper(JobQueue* queue, PilotsToKeep pilots, absl::Duration patience);

  // Returns what it changed, a line each, for people. It submits nothing unless
  // a task waits that such a pilot may take. Two keepers of the same command
  // and options see the same jobs, and may submit too many at the same moment.
  absl::StatusOr<std::vector<std::string>> Look();

 private:
  JobQueue& queue_;
  const PilotsToKeep pilots_;
  const absl::Duration patience_;
  // By job: when it was first seen to run, on the steady clock.
  std::map<std::string, absl::Duration> running_since_;
};

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_KEEP_PILOTS_H_
