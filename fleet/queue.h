#ifndef OPTRAIL_FLEET_QUEUE_H_
#define OPTRAIL_FLEET_QUEUE_H_

// JobQueue keeps jobs and their tasks in the PostgreSQL database of a history;
// pilots (fleet/pilot.h) take the tasks, on whatever machines they run.
//
//   OPTRAIL_ASSIGN_OR_RETURN(JobQueue queue, JobQueue::Open(url));
//   queue.Submit({"nightly", {"bench --op=softmax --record"}});
//   // Elsewhere:
//   OPTRAIL_ASSIGN_OR_RETURN(const auto task, queue.Claim(pilot));
//   OPTRAIL_RETURN_IF_ERROR(queue.Finish(*task, outcome, records));
//
// A claimed task is leased: the pilot says regularly that it is alive
// (KeepAlive), or another one gets the task. The fencing token (task, attempt,
// pilot) keeps a pilot that was thought dead from writing over its successor:
// its Finish is refused with Aborted, and none of its records are kept. A task
// that ran twice counts once.
//
// Only the database's clock is asked. Thread safety: one thread at a time.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "tracker/history/postgres/postgres.h"
#include "tracker/history/postgres/postgres_store.h"

namespace optrail::fleet {

// Creates or updates the tables; its caller owns the database.
absl::Status InitFleet(const std::string& url);

struct JobRequest {
  std::string name;
  // A line of the command line each, without "optrail": "tune --op=softmax".
  std::vector<std::string> commands;
  int priority = 0;              // the highest first
  std::string hardware_id = "";  // of the pilots that may take it; "": any
  int most_attempts = 3;
  absl::Duration time_limit = absl::Hours(2);  // of one attempt, while it runs
  absl::optional<absl::Duration> deadline = absl::nullopt;  // from now
  // By command: the command of a task, one for all that name it, that ends
  // before. Pilots of `first_hardware_id` take these.
  std::map<std::string, std::string> first = {};
  std::string first_hardware_id = "";
  // Who submits anew what may have arrived gives the token of the first time,
  // NewToken(): the job is there once. "": Submit() takes one of its own.
  std::string token = "";
};

std::string NewToken();

// Who takes tasks.
struct PilotInfo {
  std::string id;  // unique over time
  std::string host;
  std::string hardware_id;
  std::string slurm_job;
  bool has_repository = false;  // it takes tasks that build commits, too
};

struct Task {
  int64_t task = 0;
  int64_t attempt = 0;
  std::string pilot;
  std::string command;
  absl::Duration time_limit;
};

struct Outcome {
  bool is_result = false;  // false: the attempt failed and may be repeated
  int exit_code = 0;
  std::string log;  // its end
};

// A task of a job, and its last attempt.
struct TaskResult {
  int64_t task = 0;
  std::string command;
  std::string
      state;  // of the table: "waiting", "queued", "leased", "done", ...
  int64_t attempt = 0;
  int exit_code = 0;        // of a task that is done
  std::string log;          // of the last attempt that ended
  std::string hardware_id;  // of the pilot of that attempt
};

struct UnfinishedTasks {
  int64_t all = 0;
  std::map<std::pair<std::string, std::string>, int64_t> left;  // state, id

  // "job 7: 2 of 12 tasks are not done: 1 leased, 1 queued on nvidia-h200"; ""
  // if all are.
  std::string Text(int64_t job) const;
  // All of them may still be done: none has failed or was cancelled.
  bool MayEnd() const;
};

struct JobStatus {
  int64_t job = 0;
  std::string name;
  // Those that wait for another task count as queued.
  int64_t queued = 0, running = 0, done = 0, failed = 0, cancelled = 0;
  // From the tasks that are done and the pilots at work; absent before that.
  absl::optional<absl::Duration> estimated_left;
  std::string submitted_by;  // a user of the database, who may cancel it
};

struct PilotStatus {
  PilotInfo info;
  bool is_draining = false;
  int64_t running = 0;
  absl::Duration silent;  // since it was last heard of
};

struct FleetStatus {
  std::vector<JobStatus> jobs;      // the newest first
  std::vector<PilotStatus> pilots;  // heard of within the last hour
  int64_t leases_lost = 0;
  int64_t finished_last_hour = 0;
  // Results of the runs that began within the last hour, one per metric.
  int64_t measured_last_hour = 0;
  int64_t without_value_last_hour = 0;  // disturbed, failed or not supported
  int64_t disturbed_last_hour = 0;      // a part of without_value_last_hour
  // How many series the newest report gave each verdict.
  std::map<std::string, int64_t> verdicts;
};

// True for an error after which it is worth to ask again: the database is away,
// or its disk or its memory is full. None is the caller's doing, and all pass.
bool MayPass(const absl::Status& status);

class JobQueue {
 public:
  // How long a pilot may be silent before another one gets its task.
  static absl::StatusOr<JobQueue> Open(
      const std::string& url, absl::Duration lease = absl::Seconds(60));

  // The job's number. Unavailable: the job may be there all the same, see
  // JobRequest::token.
  absl::StatusOr<int64_t> Submit(const JobRequest& request);
  // Tasks that were not finished; a running one is stopped by its pilot.
  // PermissionDenied for a job of somebody else, but to maintainers.
  absl::StatusOr<int64_t> Cancel(int64_t job);
  // Tells pilots, or all for "", to end after their task. Their number.
  absl::StatusOr<int64_t> Drain(const std::string& pilot);
  absl::StatusOr<FleetStatus> Status();
  // Slurm's numbers of the jobs whose pilots were heard of within `patience`.
  absl::StatusOr<std::set<std::string>> HeardOf(absl::Duration patience);
  // Returns whether any task waits or runs that such a pilot may take. A task
  // that was not started before its deadline is none.
  absl::StatusOr<bool> HasWork(const PilotInfo& pilot);
  // The tasks of a job, in the order in which they were submitted.
  absl::StatusOr<std::vector<TaskResult>> Results(int64_t job);
  // The tasks of a job that are not done, by state and hardware; their number
  // and that of all its tasks. A task ahead of others (JobRequest::first) that
  // failed is left out, since those do its work. NotFound: there is no such
  // job. Readers may ask.
  absl::StatusOr<UnfinishedTasks> Unfinished(int64_t job);
  // The logs of a job's attempts, oldest first; "" before any has ended.
  // NotFound: there is no such job.
  absl::StatusOr<std::string> Logs(int64_t job);

  // Tasks of pilots that fell silent go back into the queue, or fail for good
  // where they had their attempts or their deadline is past. Claim() does this
  // too; at most four times a lease.
  absl::Status TakeBackLost();
  // nullopt: there is nothing to do for this pilot now, or it was told to end.
  absl::StatusOr<absl::optional<Task>> Claim(const PilotInfo& pilot);
  // False: the task is no longer this attempt's, stop it.
  absl::StatusOr<bool> KeepAlive(const Task& task);
  // Returns whether there may be a task for this pilot, now or soon: one that
  // waits for a task that another pilot runs or is there to take. To a pilot
  // that `is_new` those others may still be on their way.
  absl::StatusOr<bool> MayGetTasks(const PilotInfo& pilot, bool is_new);
  // Says that the pilot is there. Returns whether it was told to end.
  absl::StatusOr<bool> IsDraining(const PilotInfo& pilot);
  // Keeps the records of a result and ends the task, all or nothing. Aborted if
  // the task is no longer this attempt's.
  absl::Status Finish(const Task& task, const Outcome& outcome,
                      const std::vector<tracker::PlacedRecord>& records);
  // Puts the task back, for a pilot that is told to end now; the attempt does
  // not count.
  absl::Status Release(const Task& task);

  absl::Duration lease() const { return lease_; }

 private:
  JobQueue(std::string url, std::shared_ptr<const tracker::RecordStore> store,
           absl::Duration lease)
      : url_(std::move(url)), store_(std::move(store)), lease_(lease) {}

  using Rows = std::vector<tracker::Postgres::Row>;
  using Values = std::vector<tracker::Postgres::Value>;
  // Over a new connection where the old one broke.
  absl::StatusOr<Rows> Query(const std::string& sql, const Values& values);
  // NotFound unless there is such a job.
  absl::Status CheckIsThere(int64_t job);
  absl::Status AddJobs(FleetStatus* status);
  absl::Status AddPilots(FleetStatus* status);
  absl::Status AddCounts(FleetStatus* status);

  std::string url_;
  std::shared_ptr<const tracker::RecordStore> store_;
  absl::Duration lease_;
  std::shared_ptr<tracker::Postgres> db_;
  absl::optional<absl::Duration> took_back_;  // of SteadyNow()
};

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_QUEUE_H_
