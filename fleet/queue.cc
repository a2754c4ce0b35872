#include "fleet/queue.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/utf8.h"
#include "fleet/row_values.h"
#include "fleet/schema.h"
#include "fleet/steady_now.h"
#include "fleet/task_command.h"
#include "tracker/history/postgres/schema.h"

namespace optrail::fleet {
namespace {

using tracker::Postgres;

std::string Seconds(absl::Duration duration) {
  return absl::StrCat(absl::ToDoubleSeconds(duration));
}

Postgres::Value Optional(const std::string& text) {
  return text.empty() ? Postgres::Value() : Postgres::Value(text);
}

std::vector<Postgres::Value> TokenOf(const Task& task) {
  return {absl::StrCat(task.task), absl::StrCat(task.attempt), task.pilot};
}

absl::Status NoSuchJob(int64_t job) {
  return absl::NotFoundError(absl::StrCat(
      "there is no job ", job, "; `optrail fleet status` lists them"));
}

// False for a command that no pilot runs: any of them may say so.
bool NeedsRepository(const std::string& command) {
  const auto words = WordsOfCommand(command);
  return words.ok() && BuildsCommits(*words);
}

// A value of PostgreSQL's array types.
std::string ArrayOf(const std::vector<std::string>& elements) {
  std::string array = "{";
  for (const std::string& element : elements) {
    absl::StrAppend(&array, array.size() > 1 ? "," : "", "\"");
    for (const char c : element) {
      if (c == '"' || c == '\\') array.push_back('\\');
      array.push_back(c);
    }
    array.push_back('"');
  }
  array.push_back('}');
  return array;
}

absl::Status CheckRequest(const JobRequest& request) {
  if (request.commands.empty()) {
    return absl::InvalidArgumentError(
        "a job needs a command, such as \"tune --op=softmax\"");
  }
  std::vector<std::string> texts = request.commands;
  texts.push_back(request.name);
  texts.push_back(request.hardware_id);
  for (const std::string& text : texts) {
    if (IsValidUtf8(text)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "'", SanitiseText(text), "': expected UTF-8, which PostgreSQL keeps"));
  }
  if (request.most_attempts < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--attempts=", request.most_attempts, ": expected at least 1"));
  }
  if (request.time_limit < absl::Seconds(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--task_time=", absl::FormatDuration(request.time_limit),
                     ": expected at least 1s"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string NewToken() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) {
    absl::StrAppend(&token, absl::Hex(random(), absl::kZeroPad8));
  }
  return token;
}

bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
}

absl::Status InitFleet(const std::string& url) {
  OPTRAIL_ASSIGN_OR_RETURN(const auto db, Postgres::Connect(url));
  OPTRAIL_RETURN_IF_ERROR(tracker::InitHistorySchema(*db));
  return tracker::InitSchema(*db, FleetComponent(), kFleetRights);
}

absl::StatusOr<JobQueue> JobQueue::Open(const std::string& url,
                                        absl::Duration lease) {
  OPTRAIL_ASSIGN_OR_RETURN(auto store, tracker::OpenPostgresStore(url));
  JobQueue queue(url, std::move(store), lease);
  OPTRAIL_ASSIGN_OR_RETURN(queue.db_, Postgres::Connect(url));
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckSchema(*queue.db_, FleetComponent()));
  return queue;
}

absl::StatusOr<JobQueue::Rows> JobQueue::Query(const std::string& sql,
                                               const Values& values) {
  absl::StatusOr<Rows> rows = db_->Query(sql, values);
  if (!absl::IsUnavailable(rows.status())) return rows;
  OPTRAIL_ASSIGN_OR_RETURN(db_, Postgres::Connect(url_));
  return db_->Query(sql, values);
}

absl::StatusOr<int64_t> JobQueue::Submit(const JobRequest& request) {
  OPTRAIL_RETURN_IF_ERROR(CheckRequest(request));
  // One statement, so that a job has all of its tasks or does not exist.
  std::vector<std::string> needs, waits_for;
  for (const std::string& command : request.commands) {
    needs.push_back(NeedsRepository(command) ? "t" : "f");
    const auto found = request.first.find(command);
    waits_for.push_back(found == request.first.end() ? "" : found->second);
  }
  std::set<std::string> first(waits_for.begin(), waits_for.end());
  first.erase("");
  // Repeated over a new connection it finds the job of the first time.
  const std::string token = request.token.empty() ? NewToken() : request.token;
  OPTRAIL_ASSIGN_OR_RETURN(
      const Rows rows,
      Query(
          "WITH job AS (INSERT INTO optrail.jobs (name, priority, deadline, "
          "token) VALUES ($1, $2, now() + make_interval(secs => $3), $12) "
          "ON CONFLICT (token) DO NOTHING RETURNING job, priority, deadline), "
          "first AS (INSERT INTO optrail.tasks (job, command, priority, "
          "hardware_id, most_attempts, time_limit_s, deadline) "
          "SELECT job, command, priority, $9, $5, $6, deadline "
          "FROM job, unnest($10::text[]) AS c (command) "
          "RETURNING task, command) "
          "INSERT INTO optrail.tasks (job, command, priority, hardware_id, "
          "most_attempts, time_limit_s, deadline, needs_repository, waits_for, "
          "state) SELECT job, c.command, priority, $4, $5, $6, deadline, "
          "needs, first.task, CASE WHEN first.task IS NULL THEN 'queued' ELSE "
          "'waiting' END FROM job, unnest($7::text[], $8::boolean[], "
          "$11::text[]) WITH ORDINALITY AS c (command, needs, waits_for, i) "
          "LEFT JOIN first ON first.command = c.waits_for ORDER BY i "
          "RETURNING job",
          {request.name, absl::StrCat(request.priority),
           request.deadline.has_value()
               ? Postgres::Value(Seconds(*request.deadline))
               : Postgres::Value(),
           request.hardware_id, absl::StrCat(request.most_attempts),
           Seconds(request.time_limit), ArrayOf(request.commands),
           ArrayOf(needs), request.first_hardware_id,
           ArrayOf({first.begin(), first.end()}), ArrayOf(waits_for), token}));
  if (!rows.empty()) return Number(rows[0][0]);
  OPTRAIL_ASSIGN_OR_RETURN(
      const Rows earlier,
      Query("SELECT job FROM optrail.jobs WHERE token = $1", {token}));
  if (earlier.empty()) {
    return absl::InternalError("fleet: the job was not added");
  }
  return Number(earlier[0][0]);
}

absl::Status JobQueue::CheckIsThere(int64_t job) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const Rows known,
      Query("SELECT FROM optrail.jobs WHERE job = $1", {absl::StrCat(job)}));
  return known.empty() ? NoSuchJob(job) : absl::OkStatus();
}

absl::StatusOr<int64_t> JobQueue::Cancel(int64_t job) {
  OPTRAIL_RETURN_IF_ERROR(CheckIsThere(job));
  OPTRAIL_ASSIGN_OR_RETURN(
      const Rows rows,
      Query("SELECT optrail.cancel_job($1)", {absl::StrCat(job)}));
  return rows.empty() ? 0 : Number(rows[0][0]);
}

absl::StatusOr<int64_t> JobQueue::Drain(const std::string& pilot) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const Rows rows,
      Query("UPDATE optrail.pilots SET draining = true WHERE $1 IN ('', pilot) "
            "AND seen > now() - interval '1 hour' RETURNING pilot",
            {pilot}));
  if (rows.empty() && !pilot.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "there is no pilot '", pilot, "'; `optrail fleet status` lists them"));
  }
  return static_cast<int64_t>(rows.size());
}

absl::Status JobQueue::TakeBackLost() {
  const absl::Duration now = SteadyNow();
  if (took_back_.has_value() && now - *took_back_ < lease_ / 4) {
    return absl::OkStatus();
  }
  // The next call asks again for what the database refused.
  OPTRAIL_RETURN_IF_ERROR(
      Query("SELECT optrail.take_back_lost_tasks()", {}).status());
  took_back_ = now;
  return absl::OkStatus();
}

absl::StatusOr<absl::optional<Task>> JobQueue::Claim(const PilotInfo& pilot) {
  OPTRAIL_RETURN_IF_ERROR(TakeBackLost());
  // Repeated over a new connection it may lease two tasks; the one that nobody
  // keeps alive comes back by itself.
  OPTRAIL_ASSIGN_OR_RETURN(
      const Rows rows, Query("SELECT * FROM optrail.claim_task($1, $2, $3, $4)",
                             {pilot.id, Seconds(lease_), pilot.hardware_id,
                              pilot.has_repository ? "t" : "f"}));
  if (rows.empty()) return absl::optional<Task>();
  Task task;
  task.task = Number(rows[0][0]);
  task.attempt = Number(rows[0][1]);
  task.pilot = pilot.id;
  task.command = Text(rows[0][2]);
  task.time_limit = SecondsOf(rows[0][3]);
  return absl::optional<Task>(task);
}

absl::StatusOr<bool> JobQueue::MayGetTasks(const PilotInfo& pilot,
                                           bool is_new) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const Rows rows,
      Query("SELECT optrail.may_get_tasks($1, $2, $3, $4)",
            {pilot.hardware_id, pilot.has_repository ? "t" : "f",
             Seconds(2 * lease_), is_new ? "t" : "f"}));
  return !rows.empty() && Text(rows[0][0]) == "t";
}

absl::StatusOr<bool> JobQueue::IsDraining(const PilotInfo& pilot) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const Rows rows,
      Query("INSERT INTO optrail.pilots (pilot, host, hardware_id, slurm_job, "
            "has_repository) VALUES ($1, $2, $3, $4, $5) "
            "ON CONFLICT (pilot) DO UPDATE SET seen = now() RETURNING draining",
            {pilot.id, pilot.host, pilot.hardware_id, Optional(pilot.slurm_job),
             pilot.has_repository ? "t" : "f"}));
  return !rows.empty() && Text(rows[0][0]) == "t";
}

absl::StatusOr<bool> JobQueue::KeepAlive(const Task& task) {
  Values values = TokenOf(task);
  values.push_back(Seconds(lease_));
  OPTRAIL_ASSIGN_OR_RETURN(
      const Rows rows,
      Query("UPDATE optrail.tasks SET lease_until = now() + "
            "make_interval(secs => $4) WHERE task = $1 AND attempt = $2 AND "
            "pilot = $3 AND state = 'leased' RETURNING task",
            values));
  return !rows.empty();
}

absl::Status JobQueue::Finish(
    const Task& task, const Outcome& outcome,
    const std::vector<tracker::PlacedRecord>& records) {
  Values values = TokenOf(task);
  values.push_back(outcome.is_result ? "t" : "f");
  values.push_back(absl::StrCat(outcome.exit_code));
  // PostgreSQL takes no text that is not UTF-8, and no NUL.
  std::string log = ReplaceInvalidUtf8(outcome.log);
  std::replace(log.begin(), log.end(), '\0', ' ');
  values.push_back(log);
  const char kEnd[] = "SELECT optrail.finish_task($1, $2, $3, $4, $5, $6)";
  const auto check = [&](const absl::StatusOr<Rows>& rows) -> absl::Status {
    if (!rows.ok()) return rows.status();
    if (!rows->empty() && Text((*rows)[0][0]) == "t") return absl::OkStatus();
    return absl::AbortedError(absl::StrCat(
        "task ", task.task, " is no longer attempt ", task.attempt, " of ",
        task.pilot, ": it was cancelled, or its lease was lost"));
  };
  // One statement without a session's state: a pool may carry it.
  if (!outcome.is_result || records.empty()) return check(Query(kEnd, values));
  // If our network stalls within the transaction, its locks must not keep the
  // task from others for longer than half a lease.
  const std::string patience_ms = absl::StrCat(absl::ToInt64Milliseconds(
      std::min<absl::Duration>(lease_ / 2, absl::Seconds(30))));
  const auto end = [&](Postgres& db) -> absl::Status {
    OPTRAIL_RETURN_IF_ERROR(
        db.Query("SELECT set_config('idle_in_transaction_session_timeout', "
                 "$1, true)",
                 {patience_ms})
            .status());
    return check(db.Query(kEnd, values));
  };
  return tracker::PutTogether(*store_, records, end);
}

absl::Status JobQueue::Release(const Task& task) {
  return Query(
             "UPDATE optrail.tasks SET state = 'queued', attempt = attempt - "
             "1, pilot = NULL, lease_until = NULL WHERE task = $1 AND "
             "attempt = $2 AND pilot = $3 AND state = 'leased'",
             TokenOf(task))
      .status();
}

absl::StatusOr<std::vector<TaskResult>> JobQueue::Results(int64_t job) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const Rows rows,
      Query("SELECT t.task, command, state, t.attempt, exit_code, log, "
            "ran.hardware_id FROM optrail.tasks t LEFT JOIN LATERAL ("
            "SELECT exit_code, log, a.pilot FROM optrail.attempts a "
            "WHERE a.task = t.task ORDER BY a.attempt DESC LIMIT 1) last "
            "ON true LEFT JOIN optrail.pilots ran ON ran.pilot = last.pilot "
            "WHERE job = $1 ORDER BY t.task",
            {absl::StrCat(job)}));
  std::vector<TaskResult> results;
  for (const Postgres::Row& row : rows) {
    results.push_back({Number(row[0]), Text(row[1]), Text(row[2]),
                       Number(row[3]), static_cast<int>(Number(row[4])),
                       Text(row[5]), Text(row[6])});
  }
  return results;
}

absl::StatusOr<std::string> JobQueue::Logs(int64_t job) {
  OPTRAIL_RETURN_IF_ERROR(CheckIsThere(job));
  OPTRAIL_ASSIGN_OR_RETURN(
      const Rows rows,
      Query("SELECT task, a.attempt, a.pilot, exit_code, command, log "
            "FROM optrail.attempts a JOIN optrail.tasks USING (task) "
            "WHERE job = $1 ORDER BY task, a.attempt",
            {absl::StrCat(job)}));
  std::string text;
  for (const auto& row : rows) {
    absl::StrAppend(&text, "== task ", Text(row[0]), ", attempt ", Text(row[1]),
                    ", pilot ", Text(row[2]), ", exit code ", Text(row[3]),
                    ": ", Text(row[4]), "\n", Text(row[5]));
    if (!text.empty() && text.back() != '\n') text.push_back('\n');
  }
  return text;
}

std::string UnfinishedTasks::Text(int64_t job) const {
  int64_t count = 0;
  std::vector<std::string> parts;
  for (const auto& [key, tasks] : left) {
    count += tasks;
    parts.push_back(absl::StrCat(tasks, " ", key.first,
                                 key.second.empty() ? "" : " on ", key.second));
  }
  if (count == 0) return "";
  return absl::StrCat("job ", job, ": ", count, " of ", all,
                      all == 1 ? " task is" : " tasks are",
                      " not done: ", absl::StrJoin(parts, ", "));
}

bool UnfinishedTasks::MayEnd() const {
  return !left.empty() &&
         std::all_of(left.begin(), left.end(), [](const auto& each) {
           const std::string& state = each.first.first;
           return state != "failed" && state != "cancelled";
         });
}

absl::StatusOr<UnfinishedTasks> JobQueue::Unfinished(int64_t job) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const Rows rows,
      Query("SELECT state, hardware_id, count(*) FROM optrail.task_states "
            "WHERE job = $1 AND NOT (is_ahead AND state IN ('failed', "
            "'cancelled')) GROUP BY state, hardware_id",
            {absl::StrCat(job)}));
  if (rows.empty()) return NoSuchJob(job);
  UnfinishedTasks tasks;
  for (const Postgres::Row& row : rows) {
    tasks.all += Number(row[2]);
    if (Text(row[0]) == "done") continue;
    tasks.left[{Text(row[0]), Text(row[1])}] = Number(row[2]);
  }
  return tasks;
}

}  // namespace optrail::fleet
