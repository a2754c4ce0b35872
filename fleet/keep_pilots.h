#ifndef OPTRAIL_FLEET_KEEP_PILOTS_H_
#define OPTRAIL_FLEET_KEEP_PILOTS_H_

// Keeps the number of pilots in Slurm while there is work: submits pilots for
// those that have ended, and replaces jobs that Slurm calls running although
// nobody takes tasks there.
//
//   const PilotInfo info = {"", "", "nvidia-h200", ""};
//   OPTRAIL_RETURN_IF_ERROR(KeepPilots(
//       queue, {{2, {"--partition=gpu"}, command, info}}, {}, std::cout,
//       std::cerr));
//
// A job whose launch is lost, such as by a slurmd that is killed just then,
// stays "running" in Slurm until that node registers again, which may be half
// an hour later. The queue knows better: a pilot says that it is there from its
// first second on.
//
// Errors: Unavailable where the database or Slurm's controller is away; look
// again later. Thread safety: one thread at a time.

#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "fleet/queue.h"
#include "fleet/slurm.h"

namespace optrail::fleet {

struct PilotsToKeep {
  int count = 1;
  std::vector<std::string> options;  // of sbatch, see CheckOptionsToKeep()
  std::vector<std::string> command;  // of a pilot
  PilotInfo info = {};               // which tasks these pilots may take
};

class PilotKeeper {
 public:
  // `queue` outlives it. A job that has run for `patience` and was not heard of
  // for as long is replaced; longer than two looks, or silence tells nothing.
  PilotKeeper(JobQueue* queue, PilotsToKeep pilots, absl::Duration patience);

  // Takes back lost tasks, so that the last one needs no other pilot for that,
  // and returns what it changed, a line each, for people. It submits nothing
  // unless a task waits that such a pilot may take. Where three jobs in a row
  // ended before anyone heard of their pilots, it waits before the next ones:
  // for `patience`, twice that the next time, at most 16 times. Two keepers of
  // the same command and options see the same jobs, and may submit too many at
  // the same moment.
  absl::StatusOr<std::vector<std::string>> Look();

 private:
  using Changes = std::vector<std::string>;

  // The jobs whose pilots were heard of. While the database was away nobody
  // could say anything: `trusts_silence_` where it was not, for `patience`.
  absl::StatusOr<std::set<std::string>> Hear();
  // Returns whether the job counts: it is there, and not one that was silent.
  absl::StatusOr<bool> Counts(const PilotJob& job, bool is_heard,
                              Changes* changes);
  // Notes which jobs have ended before their pilots were heard of.
  void CountFailedStarts(const std::set<std::string>& listed,
                         const std::set<std::string>& heard, Changes* changes);

  JobQueue& queue_;
  const PilotsToKeep pilots_;
  const absl::Duration patience_;
  // Times of the steady clock. The database answered from the first of these
  // to the second one without a gap.
  absl::optional<absl::Duration> reached_since_, reached_;
  bool trusts_silence_ = false;
  // By job: when it was first seen to run, or last was to be cancelled.
  std::map<std::string, absl::Duration> running_since_;
  std::set<std::string> cancelled_;   // they may be listed for a while
  std::map<std::string, bool> seen_;  // by job: its pilot was heard of
  int failed_starts_ = 0;             // in a row
  absl::Duration wait_ = absl::ZeroDuration();
  absl::optional<absl::Duration> next_submit_;
};

struct KeepTimes {
  absl::Duration patience = absl::Minutes(2);  // of a PilotKeeper
  absl::Duration between_looks = absl::Seconds(15);
};

// Keeps all these pilots until no task is left that they may take. Writes what
// it changes to `out`, and to `log` why it waits where the database or Slurm is
// away. Both are asked again then; any other error ends it.
absl::Status KeepPilots(JobQueue& queue,
                        const std::vector<PilotsToKeep>& pilots,
                        const KeepTimes& times, std::ostream& out,
                        std::ostream& log);

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_KEEP_PILOTS_H_
