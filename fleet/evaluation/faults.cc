// Kills pilots, submitters and PostgreSQL at random moments, freezes pilots,
// and counts what was lost or done twice:
//
//   bazel run //fleet/evaluation:faults -- --faults=200 --seed=7
//
// Exits with 1 where anything was.

#include <iostream>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "fleet/evaluation/fault_run.h"
#include "fleet/queue.h"
#include "tracker/history/postgres/postgres_server.h"

ABSL_FLAG(int, faults, 200, "in all");
ABSL_FLAG(int, tasks, 300, "in the queue at the start");
ABSL_FLAG(int, pilots, 3, "at a time");
ABSL_FLAG(uint64_t, seed, 1, "of the moments and the kinds");

namespace optrail::fleet {
namespace {

absl::Status Main() {
  FaultOptions options;
  options.faults = absl::GetFlag(FLAGS_faults);
  options.tasks = absl::GetFlag(FLAGS_tasks);
  options.pilots = absl::GetFlag(FLAGS_pilots);
  options.seed = absl::GetFlag(FLAGS_seed);
  if (options.tasks < 1 || options.pilots < 1 || options.faults < 0) {
    return absl::InvalidArgumentError(
        "--tasks, --pilots, --faults: expected at least 1, 1 and 0");
  }
  OPTRAIL_ASSIGN_OR_RETURN(const auto server, tracker::PostgresServer::Start());
  const std::string url = server->Url("postgres", "postgres");
  OPTRAIL_RETURN_IF_ERROR(InitFleet(url));
  OPTRAIL_ASSIGN_OR_RETURN(const FaultReport report,
                           RunWithFaults(*server, url, options));
  std::cout << absl::StrFormat(
      "seed %d: killed %d pilots, %d servers and %d submitters, froze %d "
      "pilots\n%d of %d tasks done, %d runs, %d tasks done twice, %d torn "
      "jobs; a task stood %.1f leases beyond its own at most\n",
      options.seed, report.pilots_killed, report.servers_killed,
      report.submitters_killed, report.pilots_frozen, report.done, report.tasks,
      report.runs, report.done_twice, report.torn_jobs, report.most_overdue);
  if (report.Problem().empty()) return absl::OkStatus();
  return absl::DataLossError(report.Problem());
}

}  // namespace
}  // namespace optrail::fleet

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = optrail::fleet::Main();
  if (!status.ok()) std::cerr << "faults: " << status.message() << "\n";
  return status.ok() ? 0 : absl::IsUnimplemented(status) ? 3 : 1;
}
