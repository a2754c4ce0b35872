#include "tracker/trace/trace_command.h"

#include <iostream>
#include <ostream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/exit_code.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "tracker/command/no_runs.h"
#include "tracker/history/history.h"
#include "tracker/trace/trace.h"

namespace optrail::tracker {
namespace {

absl::StatusOr<Trace> FindTrace(const History& history,
                                const std::string& what) {
  const absl::StatusOr<proto::Session> session = history.ReadSession(what);
  if (session.ok()) return TraceOf(*session);
  if (!absl::IsNotFound(session.status()) &&
      !absl::IsInvalidArgument(session.status())) {
    return session.status();
  }
  std::vector<std::string> notes;
  const absl::StatusOr<RunInfo> info = history.FindRun(what, {}, &notes);
  PrintNotices(notes);
  if (absl::IsNotFound(info.status())) {
    OPTRAIL_RETURN_IF_ERROR(CheckHasRuns(history, what, "trace"));
    return absl::NotFoundError(
        absl::StrCat(info.status().message(),
                     "; expected a run or a session; next: optrail log, "
                     "optrail log sessions"));
  }
  OPTRAIL_RETURN_IF_ERROR(info.status());
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Run run, history.ReadRun(info->id()));
  return TraceOf(run);
}

}  // namespace

absl::StatusOr<int> RunTrace(const TraceCommand& options, std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const History history, OpenHistory(options.common));
  OPTRAIL_ASSIGN_OR_RETURN(const Trace trace, FindTrace(history, options.what));
  if (options.out.empty() || options.out == "-") {
    out << trace.json;
  } else {
    OPTRAIL_RETURN_IF_ERROR(WriteOutput(options.out, trace.json));
    std::cerr << options.out << ": " << trace.events
              << (trace.events == 1 ? " event on " : " events on ")
              << trace.tracks << (trace.tracks == 1 ? " track" : " tracks")
              << "; ui.perfetto.dev and speedscope.app open it\n";
  }
  if (trace.events > 0) return ToInt(ExitCode::kOk);
  std::cerr << "'" << options.what << "' holds nothing that was timed\n";
  return ToInt(ExitCode::kNotEnoughData);
}

}  // namespace optrail::tracker
