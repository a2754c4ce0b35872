#include "reports/sample/demo_command.h"

#include <filesystem>
#include <ostream>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/file/writable_folder.h"
#include "base/status_macros.h"
#include "base/text/quote.h"
#include "reports/commands.h"
#include "reports/sample/sample_history.h"
#include "tracker/history/history.h"

namespace optrail::reports {
namespace {

constexpr char kHistory[] = "history", kPage[] = "report.html";
// Stands in the folder until all of it is written. The page names the history,
// so that neither can be made under another name.
constexpr char kUnfinished[] = ".unfinished_demo";

// Makes an empty folder of --out, and removes what an interrupted demo left.
absl::Status PrepareFolder(const std::string& folder) {
  if (FileExists(JoinPath(folder, kUnfinished))) {
    for (const char* name : {kHistory, kPage}) {
      std::error_code error;
      std::filesystem::remove_all(JoinPath(folder, name), error);
      if (error) {
        return FileError("removing", JoinPath(folder, name), error.value());
      }
    }
    OPTRAIL_RETURN_IF_ERROR(RemoveFile(JoinPath(folder, kUnfinished)));
  }
  if (FileExists(folder)) {
    const auto there = ListDirectory(folder);
    if (!there.ok() || !there->empty()) {
      return absl::AlreadyExistsError(absl::StrCat(
          "--out=", folder,
          ": expected the name of a folder that is empty or does not exist "
          "yet; next: optrail demo --out=optrail_demo_2"));
    }
  }
  OPTRAIL_RETURN_IF_ERROR(CreateOutputFolder(folder));
  return WriteFileAtomically(JoinPath(folder, kUnfinished), "");
}

}  // namespace

absl::StatusOr<int> RunDemo(const DemoCommand& options, std::ostream& out,
                            std::ostream& log) {
  OPTRAIL_RETURN_IF_ERROR(PrepareFolder(options.out));
  SampleOptions wanted;
  wanted.end_unix_ns = absl::ToUnixNanos(absl::Now() - absl::Hours(2));
  wanted.states = true;
  const SampleHistory sample = MakeSampleHistory(wanted);

  const std::string folder = JoinPath(options.out, kHistory);
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                           tracker::History::Open(folder));
  for (const proto::Run& run : sample.runs) {
    OPTRAIL_RETURN_IF_ERROR(history.AppendRun(run));
  }
  for (const proto::Session& session : sample.sessions) {
    OPTRAIL_RETURN_IF_ERROR(history.AppendSession(session));
  }
  for (const proto::TriageRecord& record : sample.triage) {
    OPTRAIL_RETURN_IF_ERROR(history.AppendTriage(record));
  }
  for (const proto::Diagnosis& diagnosis : sample.diagnoses) {
    OPTRAIL_RETURN_IF_ERROR(history.AppendDiagnosis(diagnosis));
  }

  ReportCommand report;
  report.history = folder;
  report.history_is_named = true;
  report.out = JoinPath(options.out, kPage);
  report.title = "A made-up history";
  OPTRAIL_RETURN_IF_ERROR(RunReport(report, log).status());
  OPTRAIL_RETURN_IF_ERROR(RemoveFile(JoinPath(options.out, kUnfinished)));

  // The last one is of the suite that has every verdict.
  const proto::Run& newest = sample.runs.back();
  const std::string of_history =
      absl::StrCat(" --history=", QuoteForShell(folder));
  out << "Every number is made up. The report is one file, for any browser:\n"
      << "  xdg-open " << QuoteForShell(report.out) << "\n"
      << "Try:\n"
      << "  optrail changes" << of_history << "\n"
      << "  optrail log" << of_history << "\n"
      << "  optrail gate" << of_history
      << " --hardware=" << newest.hardware().id()
      << " --candidate=" << newest.commit().id().substr(0, 12) << "\n"
      << "  optrail show " << sample.sessions.front().session_id() << of_history
      << "\n";
  return 0;
}

}  // namespace optrail::reports
