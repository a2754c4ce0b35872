// The tools of `graph tune`: commands of this binary, and its history.

#include <filesystem>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/process/running_binary.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"
#include "base/text/quote.h"
#include "base/text/utf8.h"
#include "suites/graph/graph_record.h"
#include "suites/graph/tune_graph.h"
#include "tracker/history/history.h"
#include "tuning/command/tune_command.h"

namespace optrail::suites {
namespace {

// The path of this binary, which a shell can start as well.
std::string OwnPath() {
  const std::string binary = RunningBinary();
  std::error_code error;
  const auto path = std::filesystem::read_symlink(binary, error);
  return error ? binary : path.string();
}

absl::StatusCode CodeOf(const ExitInfo& exit) {
  return exit.kind == ExitInfo::Kind::kExited &&
                 exit.code == ToInt(ExitCode::kCheckFailed)
             ? absl::StatusCode::kAborted
             : absl::StatusCode::kFailedPrecondition;
}

// Runs `optrail tune` of minutes: its progress goes where ours does. What it
// prints is not read.
absl::Status TuneAloud(const std::vector<std::string>& argv) {
  SubprocessOptions options;
  options.guard = RunningBinary();
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<Subprocess> process,
                           Subprocess::Start(argv, options));
  const ExitInfo exit = process->Wait(absl::InfiniteDuration());
  if (exit.ok()) return absl::OkStatus();
  return absl::Status(
      CodeOf(exit),
      absl::StrCat("optrail tune ", exit.ToString(), ", as said above"));
}

absl::StatusOr<std::string> RunOwn(const std::vector<std::string>& arguments) {
  std::vector<std::string> argv = {OwnPath()};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  if (arguments[0] == "tune") {
    OPTRAIL_RETURN_IF_ERROR(TuneAloud(argv));
    return std::string();
  }
  CommandOptions options;
  options.guard = RunningBinary();
  OPTRAIL_ASSIGN_OR_RETURN(CommandResult result, RunCommand(argv, options));
  if (result.exit.ok()) return std::move(result.stdout_text);
  return absl::Status(
      CodeOf(result.exit),
      absl::StrCat("optrail ", absl::StrJoin(arguments, " "), ": ",
                   result.exit.ToString(), ": ",
                   SanitiseText(TailUtf8(
                       absl::StripAsciiWhitespace(result.stderr_text), 400))));
}

absl::StatusOr<proto::Session> SearchServing(const GraphTuneCommand& command,
                                             const RunContext& context,
                                             const std::string& space,
                                             const std::string& arguments) {
  tuning::TuneCommandOptions options;
  options.space_file = space;
  proto::Session& header = options.header;
  header.set_started_unix_ns(Clock::Real()->WallNs());
  header.set_session_id(tracker::NewRecordId(header.started_unix_ns()));
  *header.mutable_hardware() = context.hardware;
  *header.mutable_toolchain() = context.toolchain;
  *header.mutable_commit() = context.commit;
  options.command = absl::StrCat(QuoteForShell(OwnPath()), " ", arguments);
  options.metrics = {"requests_per_second:max"};
  options.programs = {command.path};
  options.limits.guard = RunningBinary();
  options.seed = command.seed;
  options.budget.set_trials(command.trials);
  options.proof.max_time = command.proof_time;
  options.journal_directory = JoinPath(context.state, "commands");
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<tuning::TuneCommand> tune,
                           tuning::TuneCommand::Prepare(std::move(options)));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                           tracker::History::Open(context.history));
  OPTRAIL_ASSIGN_OR_RETURN(proto::Session session, tune->Run({}, std::cerr));
  const absl::Status recorded = history.AppendSession(session);
  if (!recorded.ok() && !absl::IsAlreadyExists(recorded)) return recorded;
  OPTRAIL_RETURN_IF_ERROR(tune->RemoveJournal());
  return session;
}

}  // namespace

GraphTools OwnTools(const GraphTuneCommand& command,
                    const RunContext& context) {
  const int64_t started_unix_ns = Clock::Real()->WallNs();
  GraphTools tools;
  tools.run = RunOwn;
  tools.search = [=](const std::string& space, const std::string& arguments) {
    return SearchServing(command, context, space, arguments);
  };
  tools.record = [=](const std::vector<GraphStage>& stages) {
    return RecordRun(RunOfStages(command, stages, started_unix_ns, context),
                     context);
  };
  return tools;
}

}  // namespace optrail::suites
