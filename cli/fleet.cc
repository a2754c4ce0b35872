// `optrail fleet`: jobs for many machines, and the pilots that run them.

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file/file.h"
#include "base/process/git.h"
#include "base/process/host_name.h"
#include "base/process/running_binary.h"
#include "base/status_macros.h"
#include "base/text/utf8.h"
#include "cli/ab.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "fleet/fleet_command.h"
#include "fleet/keep_pilots.h"
#include "fleet/machines.h"
#include "fleet/pilot.h"
#include "fleet/queue.h"
#include "fleet/slurm.h"
#include "fleet/task_command.h"
#include "re2/re2.h"
#include "suites/workload/workload.h"
#include "tracker/checkout/interruptible.h"
#include "tracker/checkout/worktree.h"
#include "tracker/history/store_url.h"

ABSL_FLAG(std::string, job_name, "", "Name of the job in `fleet status`.");
ABSL_FLAG(int32_t, priority, 0, "Jobs of a higher priority go first.");
ABSL_FLAG(int32_t, attempts, 3, "Most attempts at each task.");
ABSL_FLAG(absl::Duration, task_time, absl::Hours(2),
          "Most time of one attempt while it runs; waiting does not count.");
ABSL_FLAG(absl::Duration, deadline, absl::InfiniteDuration(),
          "From now, when a task that was not started fails.");
ABSL_FLAG(std::string, tasks, "",
          "File with a task per line, beside those of the command line.");
ABSL_FLAG(std::string, run_as, "nobody",
          "User that runs the tasks, where root runs the pilot.");
ABSL_FLAG(
    std::string, repository, "",
    "What `git clone` takes, for tasks that build commits: watch, and gate "
    "with --run. They may run code of it.");
ABSL_FLAG(std::string, each_commit, "",
          "FIRST..LAST: each `watch` becomes one task per commit of this range "
          "of the current repository, newest first, and pilots measure them at "
          "the same time, each commit on one machine.");
ABSL_FLAG(std::string, compile_on, "",
          "Id of the hardware whose pilots compile ahead what tune and bench "
          "need on --hardware, which begin after that. Both share a folder, "
          "$OPTRAIL_COMPILE_CACHE.");
ABSL_FLAG(bool, until_idle, false, "End where no task is queued.");
ABSL_FLAG(absl::Duration, pilot_time, absl::InfiniteDuration(),
          "Take no task after this time.");
ABSL_FLAG(absl::Duration, lease, absl::Seconds(60),
          "How long a pilot may be silent before another gets its task.");
ABSL_FLAG(absl::optional<int32_t>, pilots, absl::nullopt,
          "How many pilots to submit to Slurm; by default 1.");
ABSL_FLAG(std::string, sbatch, "",
          "Options for sbatch: \"--partition=gpu --gres=gpu:1 --exclusive\".");

ABSL_FLAG(std::string, machines_file, "",
          "File that says which options of sbatch lead to which hardware "
          "(docs/reference/fleet.md).");

ABSL_FLAG(
    bool, keep, false,
    "Stay and keep the number of pilots of --machines_file while there is "
    "work: submit others for those that ended, and replace jobs that "
    "Slurm calls running although nobody takes tasks there.");

ABSL_DECLARE_FLAG(std::string, file_format);
ABSL_DECLARE_FLAG(std::string, hw);

namespace optrail::cli {

absl::StatusOr<std::string> FleetUrl() {
  const std::string url = absl::GetFlag(FLAGS_history);
  if (url.empty()) {
    return absl::InvalidArgumentError(
        "--history=URL is missing: expected postgresql://HOST/DATABASE, "
        "prepared by `optrail fleet init`");
  }
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      tracker::IsStoreUrl(url), "history", tracker::ShownUrl(url),
      "postgresql://HOST/DATABASE, prepared by `optrail fleet init`"));
  return url;
}

namespace {

absl::StatusOr<fleet::JobQueue> OpenQueue() {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string url, FleetUrl());
  return fleet::JobQueue::Open(url, absl::GetFlag(FLAGS_lease));
}

// For processes that another program starts: there /proc/self/exe is that one.
// A bundle's launcher is no link.
std::string PathOfThisProgram() {
  const std::string binary = RunningBinary();
  char path[PATH_MAX];
  const ssize_t length = readlink(binary.c_str(), path, sizeof(path));
  return length < 0 ? binary : std::string(path, static_cast<size_t>(length));
}

absl::StatusOr<int64_t> JobNumber(const std::string& text) {
  int64_t job = 0;
  if (absl::SimpleAtoi(text, &job)) return job;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text,
                   "': expected the number of a job; next: optrail fleet "
                   "status lists them"));
}

absl::StatusOr<int> Init(const std::vector<std::string>&) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string url, FleetUrl());
  OPTRAIL_RETURN_IF_ERROR(fleet::InitFleet(url));
  std::cout << tracker::ShownUrl(url) << ": ready\n";
  return 0;
}

// A task for each operator and shape of a workload that is tuned, so that
// several pilots can share it; anything else is one task.
absl::StatusOr<std::vector<std::string>> TasksOf(const std::string& command) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                           fleet::WordsOfCommand(command));
  std::string name;
  // These choose among the tasks, or divide what all of them have together. A
  // word that is no flag may be the value of one.
  bool is_whole = words[0] != "tune";
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    is_whole |= word[0] != '-' || absl::StartsWith(word, "--total_") ||
                absl::StartsWith(word, "-total_");
    for (const char* flag : {"op", "shape", "backend", "preset", "flagfile"}) {
      is_whole |= fleet::IsFlag(word, flag);
    }
    const size_t equals = word.find('=');
    if (fleet::IsFlag(word, "workload") && equals != std::string::npos) {
      name = word.substr(equals + 1);
    }
  }
  if (is_whole || name.empty()) return std::vector<std::string>{command};
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Workload workload,
                           suites::FindWorkload(name));
  std::vector<std::string> tasks;
  for (const proto::WorkloadLayer& layer : workload.layer()) {
    std::string task =
        absl::StrCat(command, " --op=", layer.operator_name(), " '--shape=^",
                     RE2::QuoteMeta(layer.shape()), "$'");
    // Several layers of a model may be one task.
    if (std::find(tasks.begin(), tasks.end(), task) == tasks.end()) {
      tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

// With --compile_on: a task before each that compiles kernels.
absl::Status CompileFirst(fleet::JobRequest* request) {
  request->first_hardware_id = absl::GetFlag(FLAGS_compile_on);
  if (request->first_hardware_id.empty()) return absl::OkStatus();
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      !request->hardware_id.empty(), "compile_on", request->first_hardware_id,
      "--hardware=ID beside it, which says what to compile for"));
  std::string compile_for = absl::GetFlag(FLAGS_hw);
  if (compile_for.empty() &&
      request->hardware_id != request->first_hardware_id) {
    compile_for = request->hardware_id;
  }
  const std::vector<std::string> flags = CompileCommand().flags;
  for (const std::string& command : request->commands) {
    OPTRAIL_ASSIGN_OR_RETURN(
        std::string first, fleet::CompileAheadOf(command, flags, compile_for));
    if (!first.empty()) request->first[command] = std::move(first);
  }
  return tracker::CheckFlag(!request->first.empty(), "compile_on",
                            request->first_hardware_id,
                            "a tune or bench that compiles kernels");
}

absl::StatusOr<int> Submit(const std::vector<std::string>& commands) {
  fleet::JobRequest request;
  request.commands = commands;
  if (const std::string file = absl::GetFlag(FLAGS_tasks); !file.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::string text,
                             ReadRegularFile(UserPath(file)));
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      const absl::string_view command = absl::StripAsciiWhitespace(line);
      if (command.empty() || command[0] == '#') continue;
      request.commands.emplace_back(command);
    }
  }
  request.name = absl::GetFlag(FLAGS_job_name);
  if (request.name.empty() && !request.commands.empty()) {
    request.name = request.commands[0];
  }
  if (const std::string range = absl::GetFlag(FLAGS_each_commit);
      !range.empty()) {
    tracker::Interruptible interruptible;
    OPTRAIL_ASSIGN_OR_RETURN(
        const auto trees,
        tracker::Worktrees::Create({WorkspaceDirectory(), ""}, interruptible));
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> commits,
                             trees->Range(range));
    OPTRAIL_ASSIGN_OR_RETURN(request.commands,
                             fleet::PerCommit(request.commands, commits));
  }
  std::vector<std::string> tasks;
  for (const std::string& command : request.commands) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> parts,
                             TasksOf(command));
    tasks.insert(tasks.end(), parts.begin(), parts.end());
  }
  request.commands = std::move(tasks);
  request.priority = absl::GetFlag(FLAGS_priority);
  request.hardware_id = absl::GetFlag(FLAGS_hardware);
  OPTRAIL_RETURN_IF_ERROR(CompileFirst(&request));
  request.most_attempts = absl::GetFlag(FLAGS_attempts);
  request.time_limit = absl::GetFlag(FLAGS_task_time);
  const absl::Duration deadline = absl::GetFlag(FLAGS_deadline);
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      deadline > absl::ZeroDuration(), "deadline",
      absl::FormatDuration(deadline), "a time from now on, such as 8h"));
  if (deadline != absl::InfiniteDuration()) request.deadline = deadline;
  OPTRAIL_ASSIGN_OR_RETURN(fleet::JobQueue queue, OpenQueue());
  OPTRAIL_ASSIGN_OR_RETURN(const int64_t job, queue.Submit(request));
  std::set<std::string> first;
  for (const auto& [command, before] : request.first) first.insert(before);
  std::cout << "job " << job << ": " << request.commands.size() + first.size()
            << " tasks\n";
  return 0;
}

absl::StatusOr<int> Status(const std::vector<std::string>&) {
  fleet::FleetStatusCommand options;
  OPTRAIL_ASSIGN_OR_RETURN(options.history, FleetUrl());
  options.format = absl::GetFlag(FLAGS_format);
  const std::string format = absl::GetFlag(FLAGS_file_format);
  OPTRAIL_RETURN_IF_ERROR(
      tracker::CheckFlag(format.empty() || format == "openmetrics",
                         "file_format", format, "openmetrics"));
  options.is_open_metrics = !format.empty();
  const std::string out = absl::GetFlag(FLAGS_out);
  OPTRAIL_RETURN_IF_ERROR(
      tracker::CheckFlag(options.is_open_metrics || out.empty(), "out", out,
                         "--file_format=openmetrics beside it"));
  options.file = UserPath(out);
  return fleet::RunFleetStatus(options, std::cout);
}

absl::StatusOr<int> Cancel(const std::vector<std::string>& arguments) {
  OPTRAIL_ASSIGN_OR_RETURN(const int64_t job, JobNumber(arguments[0]));
  OPTRAIL_ASSIGN_OR_RETURN(fleet::JobQueue queue, OpenQueue());
  OPTRAIL_ASSIGN_OR_RETURN(const int64_t tasks, queue.Cancel(job));
  std::cout << "job " << job << ": " << tasks << " tasks cancelled\n";
  return 0;
}

absl::StatusOr<int> Logs(const std::vector<std::string>& arguments) {
  OPTRAIL_ASSIGN_OR_RETURN(const int64_t job, JobNumber(arguments[0]));
  OPTRAIL_ASSIGN_OR_RETURN(fleet::JobQueue queue, OpenQueue());
  OPTRAIL_ASSIGN_OR_RETURN(const std::string logs, queue.Logs(job));
  if (logs.empty()) {
    std::cerr << "note: no task of job " << job
              << " has ended; next: optrail fleet status shows how far it is\n";
  }
  std::cout << SanitiseText(logs);
  return 0;
}

absl::StatusOr<int> Drain(const std::vector<std::string>& arguments) {
  OPTRAIL_ASSIGN_OR_RETURN(fleet::JobQueue queue, OpenQueue());
  OPTRAIL_ASSIGN_OR_RETURN(const int64_t pilots,
                           queue.Drain(arguments.empty() ? "" : arguments[0]));
  std::cout << pilots << " pilots end after their task\n";
  return 0;
}

// A pilot's command line is for everybody of its machine to read, code that is
// measured included, and Slurm shows a job's script. A clone keeps the URL that
// it was made from, in the folder of the task.
absl::StatusOr<std::string> UrlOfPilot() {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string url, FleetUrl());
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      tracker::ShownUrl(url) == url, "history", tracker::ShownUrl(url),
      "no password in it; next: put it into ~/.pgpass of the pilots' user"));
  const std::string from = absl::GetFlag(FLAGS_repository);
  const std::string shown = tracker::ShownUrl(from);
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      shown == from, "repository", shown,
      "no password in it; next: give it to git of the user of the tasks"));
  return url;
}

absl::StatusOr<int> RunAsPilot(const std::vector<std::string>&) {
  fleet::PilotOptions options;
  OPTRAIL_ASSIGN_OR_RETURN(options.url, UrlOfPilot());
  options.info.host = HostName();
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Hardware hardware, HardwareOfRuns());
  options.info.hardware_id = hardware.id();
  const char* const slurm_job = std::getenv("SLURM_JOB_ID");
  if (slurm_job != nullptr) options.info.slurm_job = slurm_job;
  options.run_as = absl::GetFlag(FLAGS_run_as);
  options.repository = absl::GetFlag(FLAGS_repository);
  options.until_idle = absl::GetFlag(FLAGS_until_idle);
  options.time = absl::GetFlag(FLAGS_pilot_time);
  OPTRAIL_RETURN_IF_ERROR(
      CheckDuration("pilot_time", options.time, absl::Seconds(1)));
  options.lease = absl::GetFlag(FLAGS_lease);
  OPTRAIL_RETURN_IF_ERROR(
      CheckDuration("lease", options.lease, absl::Seconds(5)));
  options.program = {PathOfThisProgram()};
  options.guard = RunningBinary();
  OPTRAIL_ASSIGN_OR_RETURN(const fleet::PilotReport report,
                           fleet::RunPilot(options, std::cerr));
  std::cout << report.done << " tasks done, " << report.failed
            << " attempts failed, " << report.lost << " lost\n";
  return 0;
}

// The command line of the pilots that `up` submits.
absl::StatusOr<std::vector<std::string>> PilotOfUp() {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string url, UrlOfPilot());
  const std::string from = absl::GetFlag(FLAGS_repository);
  const absl::Duration lease = absl::GetFlag(FLAGS_lease);
  OPTRAIL_RETURN_IF_ERROR(CheckDuration("lease", lease, absl::Seconds(5)));
  // Slurm's job has another environment than this command.
  std::vector<std::string> pilot = {"env"};
  for (const char* const name : fleet::kPassedOn) {
    const char* const value = std::getenv(name);
    if (value != nullptr) pilot.push_back(absl::StrCat(name, "=", value));
  }
  for (std::string word :
       {PathOfThisProgram(), std::string("fleet"), std::string("pilot"),
        absl::StrCat("--history=", url), std::string("--until_idle"),
        absl::StrCat("--run_as=", absl::GetFlag(FLAGS_run_as)),
        absl::StrCat("--lease=", absl::FormatDuration(lease))}) {
    pilot.push_back(std::move(word));
  }
  if (!from.empty()) pilot.push_back(absl::StrCat("--repository=", from));
  const absl::Duration time = absl::GetFlag(FLAGS_pilot_time);
  OPTRAIL_RETURN_IF_ERROR(CheckDuration("pilot_time", time, absl::Seconds(1)));
  if (time != absl::InfiniteDuration()) {
    pilot.push_back(absl::StrCat("--pilot_time=", absl::FormatDuration(time)));
  }
  return pilot;
}

// How many pilots `up` submits, for which hardware.
absl::StatusOr<std::vector<fleet::PilotsOfHardware>> PilotsToSubmit() {
  const std::string hardware = absl::GetFlag(FLAGS_hardware);
  const std::string machines = absl::GetFlag(FLAGS_machines_file);
  const absl::optional<int32_t> count = absl::GetFlag(FLAGS_pilots);
  if (!machines.empty()) {
    OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
        !count.has_value(), "pilots", absl::StrCat(count.value_or(1)),
        "no such flag beside --machines_file, whose `pilots` says how many"));
    return fleet::ReadMachines(UserPath(machines), hardware);
  }
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      hardware.empty(), "hardware", hardware,
      "--machines_file=FILE beside it, which says where that hardware is"));
  const int32_t pilots = count.value_or(1);
  OPTRAIL_RETURN_IF_ERROR(
      tracker::CheckFlag(pilots >= 1 && pilots <= fleet::kMostPilots, "pilots",
                         pilots, absl::StrCat("1 to ", fleet::kMostPilots)));
  return std::vector<fleet::PilotsOfHardware>{{"", pilots, {}}};
}

// Returns what `up` submits to Slurm, by hardware.
absl::StatusOr<std::vector<fleet::PilotsToKeep>> PilotsOfUp() {
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> pilot, PilotOfUp());
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<fleet::PilotsOfHardware> all,
                           PilotsToSubmit());
  std::vector<fleet::PilotsToKeep> pilots;
  for (fleet::PilotsOfHardware& each : all) {
    fleet::PilotsToKeep kept = {each.count, std::move(each.sbatch), pilot};
    for (const absl::string_view option :
         absl::StrSplit(absl::GetFlag(FLAGS_sbatch), ' ', absl::SkipEmpty())) {
      kept.options.emplace_back(option);
    }
    if (!each.hardware_id.empty()) {
      kept.command.push_back(absl::StrCat("--hardware=", each.hardware_id));
    }
    kept.info.hardware_id = each.hardware_id;
    kept.info.has_repository = !absl::GetFlag(FLAGS_repository).empty();
    pilots.push_back(std::move(kept));
  }
  return pilots;
}

absl::StatusOr<int> KeepUp(const std::vector<fleet::PilotsToKeep>& pilots) {
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      !absl::GetFlag(FLAGS_machines_file).empty(), "keep", "true",
      "--machines_file=FILE beside it, which says for which hardware"));
  for (const fleet::PilotsToKeep& each : pilots) {
    OPTRAIL_RETURN_IF_ERROR(fleet::CheckOptionsToKeep(each.options));
  }
  const absl::Duration lease = absl::GetFlag(FLAGS_lease);
  OPTRAIL_ASSIGN_OR_RETURN(fleet::JobQueue queue, OpenQueue());
  OPTRAIL_RETURN_IF_ERROR(
      fleet::KeepPilots(queue, pilots,
                        {std::max(2 * lease, absl::Minutes(1)),
                         std::min(lease / 2, absl::Seconds(15))},
                        std::cout, std::cerr));
  return 0;
}

absl::StatusOr<int> Up(const std::vector<std::string>&) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<fleet::PilotsToKeep> all,
                           PilotsOfUp());
  if (absl::GetFlag(FLAGS_keep)) return KeepUp(all);
  for (const fleet::PilotsToKeep& each : all) {
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::vector<std::string> jobs,
        fleet::SubmitPilots(each.count, each.options, each.command));
    for (const std::string& job : jobs) {
      std::cout << "Slurm job " << job
                << (each.info.hardware_id.empty() ? "" : " on ")
                << each.info.hardware_id << "\n";
    }
  }
  return 0;
}

}  // namespace

suites::Command FleetCommand() {
  suites::Command command;
  command.name = "fleet";
  command.arguments =
      "init|submit COMMAND...|status|cancel JOB|logs JOB|drain "
      "[PILOT]|pilot|up";
  command.summary = "Runs jobs on many machines, by Slurm or by hand.";
  command.details = HelpText("fleet");
  command.meanings = {
      {"hardware",
       "Id of the hardware whose pilots may take the tasks, or are submitted."},
      {"hw",
       "With --compile_on: what `compile` is to compile for, such as sm_90a, "
       "where it does not know --hardware."},
      {"out", "File for OpenMetrics, replaced atomically."},
      {"file_format", "openmetrics: for a monitoring system."}};
  const auto part = [](std::string name, std::string arguments,
                       std::string summary, std::vector<std::string> flags,
                       int least, int most, decltype(&Init) run) {
    return Part(std::move(name), std::move(arguments), std::move(summary),
                Together({{"history"}, std::move(flags)}), least, most, run);
  };
  command.parts = {
      part("init", "", "Prepares a database for histories and jobs.", {}, 0, 0,
           Init),
      part("submit", "COMMAND...", "Adds a job with a task per COMMAND.",
           {"job_name", "priority", "hardware", "attempts", "task_time",
            "deadline", "tasks", "each_commit", "compile_on", "hw"},
           0, 1000, Submit),
      part("status", "", "Shows jobs and pilots.",
           {"format", "file_format", "out"}, 0, 0, Status),
      part("cancel", "JOB", "Ends a job's tasks.", {}, 1, 1, Cancel),
      part("logs", "JOB", "Prints what a job's tasks said.", {}, 1, 1, Logs),
      part("drain", "[PILOT]", "Lets pilots end after their task.", {}, 0, 1,
           Drain),
      part("pilot", "", "Takes tasks and runs them on this machine.",
           {"run_as", "repository", "until_idle", "pilot_time", "lease",
            "hardware"},
           0, 0, RunAsPilot),
      part("up", "", "Submits pilots to Slurm.",
           {"pilots", "sbatch", "run_as", "repository", "pilot_time", "lease",
            "machines_file", "hardware", "keep"},
           0, 0, Up)};
  return command;
}

}  // namespace optrail::cli
