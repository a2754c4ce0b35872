#include "diagnosis/search_again.h"

#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/status_macros.h"
#include "suites/workload/tasks.h"
#include "tracker/history/history.h"
#include "tuning/command/program.h"
#include "tuning/proto/canonical.h"

namespace optrail::diagnosis {
namespace {

// Another seed, so that a strategy does not ask for what it asked before.
uint64_t OtherSeed(const proto::Session& session) { return session.seed() + 1; }

// The task as it is today.
absl::StatusOr<suites::TaskEntry> EntryOf(const proto::Task& task,
                                          const proto::Hardware& hardware) {
  suites::TaskSelection selection;
  selection.op_regex = task.operator_name();
  selection.shape_regex = tuning::CanonicalText(task.shape());
  selection.threads = {task.threads()};
  selection.device = task.device_kind();
  selection.backend = task.backend();
  selection.cache_mode = task.cache_mode();
  selection.launch_mode = task.launch_mode();
  selection.with_test_only = true;
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<suites::TaskEntry> entries,
                           suites::SelectTasks(selection, hardware));
  for (const suites::TaskEntry& entry : entries) {
    if (tuning::TaskText(entry.task) != tuning::TaskText(task)) continue;
    if (entry.task.kernel_id() == task.kernel_id()) return entry;
    return absl::FailedPreconditionError(
        "not tried: the kernel has changed since this session; next: optrail "
        "tune --retune");
  }
  return absl::NotFoundError(
      absl::StrCat("not tried: there is no task ", tuning::TaskText(task)));
}

absl::StatusOr<proto::Session> SearchOperator(const SearchAgain& search,
                                              const SearchTools& tools) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const suites::TaskEntry entry,
      EntryOf(search.session.task(), tools.context.hardware));
  suites::TuneDriverOptions tune = tools.tune;
  tune.space_textproto = search.space_textproto;
  tune.tune.strategy = search.strategy;
  tune.tune.seed = OtherSeed(search.session);
  tune.tune.budget.set_trials(search.trials);
  tune.retune = true;
  tune.keep = false;
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<suites::TuneSummary> summaries,
                           suites::TuneTasks({entry}, tools.context, tune));
  if (!summaries[0].session) {
    return absl::UnavailableError(
        absl::StrCat("the search failed: ", summaries[0].error));
  }
  return *std::move(summaries[0].session);
}

// The metric as `tune --command --metric` takes it.
std::string MetricText(const proto::Objective& objective) {
  return absl::StrCat(
      objective.metric(),
      objective.direction() == proto::HIGHER_IS_BETTER ? ":max" : ":min");
}

absl::Status CheckProgram(const proto::TunedCommand& command) {
  std::vector<std::string> named;
  for (const proto::TunedCommand::File& file : command.programs()) {
    named.push_back(file.path());
  }
  OPTRAIL_ASSIGN_OR_RETURN(const tuning::CommandProgram found,
                           tuning::FindProgram(command.command(), named,
                                               command.working_directory()));
  for (const proto::TunedCommand::File& file : command.programs()) {
    for (const proto::TunedCommand::File& now : found.files) {
      if (now.path() == file.path() &&
          now.fingerprint() != file.fingerprint()) {
        return absl::FailedPreconditionError(absl::StrCat(
            "not tried: ", file.path(),
            " has changed since this session; next: optrail tune --command"));
      }
    }
  }
  return absl::OkStatus();
}

// The search does not measure again what the session measured.
std::vector<proto::Trial> KnownTrialsOf(const proto::Session& session) {
  std::vector<proto::Trial> known;
  for (const proto::Trial& trial : session.trials()) {
    proto::Trial& one = known.emplace_back();
    *one.mutable_config() = trial.config();
    one.set_outcome(trial.outcome());
    if (trial.has_time_ns()) one.set_time_ns(trial.time_ns());
    *one.mutable_objectives() = trial.objectives();
    one.set_session_id(trial.session_id().empty() ? session.session_id()
                                                  : trial.session_id());
  }
  return known;
}

absl::StatusOr<proto::Session> SearchCommand(const SearchAgain& search,
                                             const SearchTools& tools) {
  const proto::Session& session = search.session;
  OPTRAIL_RETURN_IF_ERROR(CheckProgram(session.command()));
  tuning::TuneCommandOptions options;
  const std::string folder = JoinPath(tools.context.state, "remedies");
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(folder));
  options.space_file = JoinPath(
      folder,
      absl::StrCat(Fingerprint(search.space_textproto), ".space.textproto"));
  OPTRAIL_RETURN_IF_ERROR(
      WriteFileAtomically(options.space_file, search.space_textproto));
  if (session.task().shape().dims_size() > 0) {
    options.shape = tuning::CanonicalText(session.task().shape());
  }
  options.header.set_started_unix_ns(Clock::Real()->WallNs());
  options.header.set_session_id(
      tracker::NewRecordId(options.header.started_unix_ns()));
  *options.header.mutable_hardware() = tools.context.hardware;
  *options.header.mutable_toolchain() = tools.context.toolchain;
  *options.header.mutable_commit() = tools.context.commit;
  options.command = session.command().command();
  options.metrics = {MetricText(session.objectives(0))};
  options.metric_patterns = {session.command().metric_patterns().begin(),
                             session.command().metric_patterns().end()};
  for (const proto::TunedCommand::File& file : session.command().programs()) {
    options.programs.push_back(file.path());
  }
  options.limits = tools.limits;
  options.limits.working_directory = session.command().working_directory();
  options.strategy = search.strategy;
  options.seed = OtherSeed(session);
  options.budget = tools.tune.tune.budget;
  options.budget.set_trials(search.trials);
  options.proof = tools.tune.tune.proof;
  options.quiet = tools.tune.quiet;
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<tuning::TuneCommand> command,
                           tuning::TuneCommand::Prepare(options));
  absl::StatusOr<proto::Session> found =
      command->Run(KnownTrialsOf(session), std::cerr);
  OPTRAIL_RETURN_IF_ERROR(RemoveFile(options.space_file));
  return found;
}

}  // namespace

absl::StatusOr<proto::Session> RunSearchAgain(const SearchAgain& search,
                                              const SearchTools& tools) {
  const std::string& measured = search.session.task().hardware_id();
  if (measured != tools.context.hardware.id()) {
    return absl::FailedPreconditionError(
        absl::StrCat("not tried: the session is of ", measured, ", this is ",
                     tools.context.hardware.id()));
  }
  return search.session.has_command() ? SearchCommand(search, tools)
                                      : SearchOperator(search, tools);
}

}  // namespace optrail::diagnosis
