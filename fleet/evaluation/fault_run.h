#ifndef OPTRAIL_FLEET_EVALUATION_FAULT_RUN_H_
#define OPTRAIL_FLEET_EVALUATION_FAULT_RUN_H_

// Pilots work off a queue while they, the server and those who submit are
// killed at random moments, pilots freeze until their lease is gone, the
// network of one stalls, the clock of a machine is hours ahead or behind, and
// the database's disk is full for a while:
//
//   OPTRAIL_ASSIGN_OR_RETURN(const FaultReport report,
//                            RunWithFaults(*server, url, options));
//   EXPECT_EQ(report.Problem(), "");
//
// Pilots are processes of this program, started by it or by Slurm, whose
// daemons are killed, too. A task copies a record that was made before, so that
// what must be in the history is known.

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "fleet/evaluation/slurm_cluster.h"
#include "tracker/history/postgres/testing/postgres_server.h"

namespace optrail::fleet {

struct FaultOptions {
  int tasks = 30;
  int pilots = 3;
  int faults = 12;
  uint64_t seed = 1;
  absl::Duration lease = absl::Seconds(1);
  absl::Duration task_time = absl::Milliseconds(50);
  bool fill_disk = false;  // the server has a file system of its own
  // If this is set, Slurm starts the pilots (`pilot` with the arguments of a
  // pilot after it, fault_tasks.h), and its daemons are killed, too.
  SlurmCluster* slurm = nullptr;
  std::vector<std::string> pilot;
  // Keeps what happened when, and what the pilots said; "": nothing is kept.
  std::string log_folder;
  std::ostream* progress = nullptr;  // how far it is
};

struct FaultReport {
  // The faults that were injected into the fleet.
  int pilots_killed = 0, pilots_frozen = 0, servers_killed = 0;
  int submitters_killed = 0, stalls = 0, disks_filled = 0;
  int controllers_killed = 0, nodes_killed = 0;  // daemons of Slurm
  int wrong_clocks = 0;    // pilots that were started with one
  int refused_writes = 0;  // probes that a full disk refused; one a fill
  // The results of the tasks.
  int64_t tasks = 0, done = 0;
  int64_t runs = 0;        // in the history; one a task
  int64_t torn_jobs = 0;   // with some of their tasks only
  int64_t done_twice = 0;  // tasks with two results
  double seconds = 0;      // from the first start of a task to the last end
  // How long a task stood beyond its lease, in leases, while the server was up.
  double most_overdue = 0;
  // The same while a pilot was there to take it: one was heard of within a
  // lease, all that time.
  double most_overdue_with_pilots = 0;
  // The same once the full disk had room again.
  double most_overdue_with_room = 0;

  // Says in words what went wrong; "" where nothing did.
  std::string Problem() const;
};

// `url` names a database of `server` after InitFleet().
absl::StatusOr<FaultReport> RunWithFaults(tracker::PostgresServer& server,
                                          const std::string& url,
                                          const FaultOptions& options);

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_EVALUATION_FAULT_RUN_H_
