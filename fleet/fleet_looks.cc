#include "fleet/fleet_looks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "fleet/steady_now.h"
#include "fleet/task_command.h"
#include "tracker/judge/evidence.h"

namespace optrail::fleet {
namespace {

using tracker::Look;
using tracker::LookRequest;
using tracker::SlowerBenchmark;

// How long a database may be away before the search gives up.
constexpr absl::Duration kPatience = absl::Minutes(10);
// A task that is queued for so long is worth a word.
constexpr absl::Duration kQueuedLong = absl::Seconds(30);

absl::string_view LastLine(absl::string_view log) {
  log = absl::StripTrailingAsciiWhitespace(log);
  const size_t before = log.rfind('\n');
  return before == absl::string_view::npos ? log : log.substr(before + 1);
}

bool IsOver(const TaskResult& task) {
  return task.state == "done" || task.state == "failed" ||
         task.state == "cancelled";
}

// A pattern that matches the name alone, in characters that a task may have.
std::string WordFor(const std::string& name) {
  return absl::StrReplaceAll(tracker::PatternOf(name), {{"'", "\\x27"}});
}

// Waits until the database is there again, for so long.
class Patience {
 public:
  // True for an error after which it is worth to ask again.
  bool Allows(const absl::Status& status) const {
    return MayPass(status) && SteadyNow() - reached_ <= kPatience;
  }
  void Reached() { reached_ = SteadyNow(); }

 private:
  absl::Duration reached_ = SteadyNow();
};

// The last lines of a log, for an error.
std::string EndOf(const std::string& log) {
  constexpr size_t kMost = 2000;
  return log.size() <= kMost ? log : log.substr(log.size() - kMost);
}

}  // namespace

FleetLooks::FleetLooks(FleetLooksOptions options, JobQueue queue)
    : options_(std::move(options)),
      queue_(std::move(queue)),
      hardware_id_(options_.hardware_id) {}

void FleetLooks::Say(const std::string& what) const {
  if (options_.say) options_.say(what);
}

absl::StatusOr<std::string> FleetLooks::CommandOf(
    const std::string& good, const std::string& other, const char* look,
    const std::vector<std::string>& flags) const {
  std::vector<std::string> words = {"bisect", good, other};
  words.insert(words.end(), options_.flags.begin(), options_.flags.end());
  // The last of several flags of one name counts.
  words.insert(words.end(), flags.begin(), flags.end());
  words.push_back(absl::StrCat("--look=", look));
  words.push_back("--quiet");
  if (!options_.arguments.empty()) {
    words.push_back("--");
    words.insert(words.end(), options_.arguments.begin(),
                 options_.arguments.end());
  }
  return CommandOfWords(words);
}

absl::StatusOr<absl::optional<SlowerBenchmark>> FleetLooks::CompareEnds(
    const std::string& good, const std::string& bad) {
  good_ = good;
  builds_ += 2;
  OPTRAIL_ASSIGN_OR_RETURN(const std::string command,
                           CommandOf(good, bad, "ends", {}));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                           RunAll("bisect: the ends", {command}));
  OPTRAIL_ASSIGN_OR_RETURN(absl::optional<SlowerBenchmark> slower,
                           tracker::ParseSlower(lines[0]));
  if (!slower.has_value()) {
    Say("nothing is slower at BAD, as far as the pilot could tell; `optrail "
        "fleet logs` has what it said");
  } else if (options_.hardware_id.empty() && !hardware_id_.empty()) {
    Say(absl::StrCat("it is looked at on hardware ", hardware_id_,
                     ", which compared the ends; --hardware names another"));
  }
  return slower;
}

absl::StatusOr<std::vector<Look>> FleetLooks::LookAt(
    const std::vector<LookRequest>& requests, const SlowerBenchmark& at) {
  std::vector<std::string> commands;
  std::string name = "bisect:";
  for (const LookRequest& request : requests) {
    OPTRAIL_ASSIGN_OR_RETURN(
        std::string command,
        CommandOf(good_, request.commit, "commit",
                  {absl::StrCat("--filter=^", WordFor(at.name), "$"),
                   absl::StrCat("--metric=", WordFor(at.metric)),
                   absl::StrCat("--seed=", request.seed)}));
    commands.push_back(std::move(command));
    absl::StrAppend(&name, " ", request.commit.substr(0, 12));
    builds_ += 2;
    Say(request.title);
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                           RunAll(name, commands));
  std::vector<Look> looks;
  for (const std::string& line : lines) {
    OPTRAIL_ASSIGN_OR_RETURN(Look look, tracker::ParseLook(line));
    looks.push_back(std::move(look));
  }
  return looks;
}

absl::StatusOr<std::vector<std::string>> FleetLooks::RunAll(
    const std::string& name, const std::vector<std::string>& commands) {
  JobRequest request;
  request.name = name;
  request.commands = commands;
  request.priority = options_.priority;
  request.hardware_id = hardware_id_;
  request.most_attempts = options_.most_attempts;
  request.time_limit = options_.time_limit;
  request.token = NewToken();
  OPTRAIL_ASSIGN_OR_RETURN(const int64_t job, SubmitPatiently(request));
  auto lines = Await(job);
  // Nobody waits for what is left.
  if (!lines.ok()) (void)queue_.Cancel(job);
  if (lines.ok() && lines->size() != commands.size()) {
    return absl::InternalError(absl::StrCat("fleet: job ", job, " has ",
                                            lines->size(), " tasks for ",
                                            commands.size(), " commands"));
  }
  return lines;
}

absl::StatusOr<int64_t> FleetLooks::SubmitPatiently(const JobRequest& request) {
  const Patience patience;
  while (true) {
    auto job = queue_.Submit(request);
    if (job.ok() || !patience.Allows(job.status())) return job;
    if (options_.may_go_on) OPTRAIL_RETURN_IF_ERROR(options_.may_go_on());
    absl::SleepFor(options_.poll);
  }
}

void FleetLooks::SayIfNobodyIsThere(const std::vector<TaskResult>& tasks,
                                    absl::Duration submitted) {
  const bool all_queued = std::all_of(
      tasks.begin(), tasks.end(),
      [](const TaskResult& task) { return task.state == "queued"; });
  if (said_nobody_ || !all_queued || SteadyNow() - submitted < kQueuedLong) {
    return;
  }
  // No more than a word for people: what fails here ends no search.
  const auto fleet = queue_.Status();
  if (absl::IsUnavailable(fleet.status())) return;
  said_nobody_ = true;
  Say(absl::StrCat(
      "no pilot has taken a look for ", absl::FormatDuration(kQueuedLong), "; ",
      fleet.ok() ? absl::StrCat(fleet->pilots.size()) : "an unknown number",
      " were heard of within the last hour. Next: ",
      "`optrail fleet pilot --repository=PATH` on each machine",
      hardware_id_.empty() ? "" : absl::StrCat(" of hardware ", hardware_id_)));
}

absl::StatusOr<std::vector<std::string>> FleetLooks::Await(int64_t job) {
  const absl::Duration submitted = SteadyNow();
  Patience patience;
  while (true) {
    if (options_.may_go_on) OPTRAIL_RETURN_IF_ERROR(options_.may_go_on());
    const auto tasks = queue_.Results(job);
    if (tasks.ok()) {
      patience.Reached();
      std::vector<std::string> lines;
      for (const TaskResult& task : *tasks) {
        if (!IsOver(task)) continue;
        if (task.state != "done") {
          return absl::FailedPreconditionError(absl::StrCat(
              "task ", task.task, " of job ", job, " is ", task.state, ": ",
              task.command, "\n", EndOf(task.log)));
        }
        lines.emplace_back(LastLine(task.log));
      }
      if (lines.size() == tasks->size()) {
        // The first that has looked decides where the others look.
        if (hardware_id_.empty() && !tasks->empty()) {
          hardware_id_ = tasks->front().hardware_id;
        }
        return lines;
      }
      SayIfNobodyIsThere(*tasks, submitted);
    } else if (!patience.Allows(tasks.status())) {
      return tasks.status();
    }
    absl::SleepFor(options_.poll);
  }
}

}  // namespace optrail::fleet
