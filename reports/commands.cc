#include "reports/commands.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file/file.h"
#include "base/process/running_binary.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "reports/build_report_data.h"
#include "reports/html_report.h"
#include "reports/inert_json.h"
#include "reports/json_report.h"
#include "reports/markdown_report.h"
#include "reports/pdf.h"
#include "reports/stored_series.h"
#include "tracker/command/command_support.h"
#include "tracker/explain/explain.h"
#include "tracker/history/history.h"
#include "tracker/history/index/history_index.h"
#include "tracker/judge/evidence.h"
#include "tracker/judge/fold_memory.h"
#include "tracker/triage/triage.h"

namespace optrail::reports {
namespace {

absl::StatusOr<std::string> FormatOf(const ReportCommand& options) {
  const std::pair<const char*, const char*> kEndings[] = {
      {".md", "markdown"}, {".markdown", "markdown"}, {".json", "json"},
      {".pdf", "pdf"},     {".html", "html"},         {".htm", "html"},
  };
  if (options.format.empty()) {
    for (const auto& [ending, format] : kEndings) {
      if (absl::EndsWithIgnoreCase(options.out, ending)) return format;
    }
    if (!absl::StrContains(FileNameOf(options.out), '.')) return "html";
    return absl::InvalidArgumentError(absl::StrCat(
        "--out=", options.out,
        ": expected a name that ends in .html, .md, .json or .pdf, or "
        "--report_format"));
  }
  for (const char* known : {"html", "markdown", "json", "pdf"}) {
    if (options.format == known) return options.format;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--report_format=", options.format,
                   ": expected html, markdown, json or pdf"));
}

// The verdicts and changes of the page, as a dashboard reads them.
std::map<std::string, tracker::KeptJudgement> JudgementsOf(
    const ReportData& data) {
  std::map<std::string, tracker::KeptJudgement> judgements;
  for (const SeriesView& series : data.series) {
    nlohmann::ordered_json changes = nlohmann::ordered_json::array();
    for (const ChangeView& change : series.changes) {
      // PostgreSQL takes no NUL.
      std::string state = change.state;
      std::replace(state.begin(), state.end(), '\0', ' ');
      const tracker::PointRuns& runs = *series.points()[change.point].runs;
      changes.push_back(
          {{"started_unix_ns", runs.first_started_unix_ns},
           {"commit_id", runs.commit.id()},
           {"relative_change", change.relative_change},
           {"text",
            absl::StrCat(FormatChange(change.relative_change), ", ", state)}});
    }
    judgements[series.of->text] = {
        std::string(tracker::VerdictName(series.verdict)), DumpInert(changes)};
  }
  return judgements;
}

// The series of a report: all of their points, or what its page shows of them.
struct ReportSeries {
  tracker::LoadedSeries whole;
  std::unique_ptr<tracker::HistoryIndex> index;
  absl::optional<StoredSeries> stored;

  const std::vector<proto::Run>& runs() const {
    return stored ? stored->runs : whole.runs;
  }
  const std::vector<tracker::BadFile>& bad_files() const {
    return stored ? stored->bad_files : whole.bad_files;
  }
  const std::vector<std::string>& notices() const {
    return stored ? stored->notices : whole.notices;
  }
};

absl::StatusOr<ReportSeries> LoadSeries(const tracker::History& history,
                                        const BuildOptions& build,
                                        bool is_page) {
  ReportSeries series;
  std::string notice;
  if (is_page) {
    auto index = tracker::OpenWorthyIndex(history);
    if (index.ok()) {
      series.index = *std::move(index);
      const tracker::TriageBook book(build.triage, build.now_unix_ns);
      StoredOptions options;
      options.book = &book;
      options.recent_points = build.recent_points;
      options.data_bytes = DataBytes(build.title);
      options.program = RunningBuildId();
      auto stored = LoadStoredSeries(*series.index, options);
      if (stored.ok()) {
        series.stored = *std::move(stored);
        return series;
      }
      series.index.reset();
      // A damaged index is built again below, and nothing is lost but time.
      if (!absl::IsDataLoss(stored.status())) {
        notice = absl::StrCat(
            "read all points, since what the index keeps of "
            "pages could not be used: ",
            stored.status().message());
      }
    }
  }
  OPTRAIL_ASSIGN_OR_RETURN(series.whole, tracker::LoadSeries(history));
  if (!notice.empty()) series.whole.notices.push_back(std::move(notice));
  return series;
}

// Keeps what was found for the next report.
ReportData Build(const tracker::History& history, ReportSeries series,
                 const std::vector<proto::Session>& sessions,
                 BuildOptions& build) {
  if (series.stored) {
    KeepStoredSeries(*series.index, *series.stored);
    return BuildReportData(series.stored->runs, *series.stored->tables,
                           std::move(series.stored->judged), sessions, build);
  }
  tracker::FoldMemory folds(std::move(series.whole.folds));
  build.folds = &folds;
  ReportData data = BuildReportData(
      series.whole.runs, std::move(series.whole.series), sessions, build);
  tracker::KeepFolds(history, folds.changed());
  return data;
}

// The sessions that can be read.
absl::StatusOr<std::vector<proto::Session>> LoadSessions(
    const tracker::History& history, std::vector<tracker::BadFile>* bad) {
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::SessionList listed,
                           history.ListSessions());
  bad->insert(bad->end(), listed.bad_files.begin(), listed.bad_files.end());
  std::vector<proto::Session> sessions;
  for (const tracker::SessionInfo& info : listed.sessions) {
    absl::StatusOr<proto::Session> session = history.ReadSession(info.id());
    if (session.ok()) {
      sessions.push_back(*std::move(session));
    } else {
      bad->push_back({info.path, std::string(session.status().message())});
    }
  }
  return sessions;
}

absl::StatusOr<ReportData> Load(const ReportCommand& options, bool is_page) {
  tracker::CommonOptions common;
  common.history = options.history;
  common.history_is_named = options.history_is_named;
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckHistoryIsThere(common));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                           tracker::History::Open(options.history));
  OPTRAIL_ASSIGN_OR_RETURN(tracker::LoadedTriage triage, history.LoadTriage());
  OPTRAIL_ASSIGN_OR_RETURN(tracker::LoadedDiagnoses diagnoses,
                           history.LoadDiagnoses());
  BuildOptions build;
  build.title = options.title;
  build.source = history.dir();
  build.history_flag = tracker::HistoryFlag(common);
  build.triage = std::move(triage.records);
  build.diagnoses = std::move(diagnoses.diagnoses);
  build.now_unix_ns = absl::GetCurrentTimeNanos();
  OPTRAIL_ASSIGN_OR_RETURN(ReportSeries series,
                           LoadSeries(history, build, is_page));
  for (const std::string& notice : series.notices()) {
    std::cerr << "note: " << notice << "\n";
  }
  std::vector<tracker::BadFile> bad = series.bad_files();
  bad.insert(bad.end(), diagnoses.bad_files.begin(), diagnoses.bad_files.end());
  bad.insert(bad.end(), triage.bad_files.begin(), triage.bad_files.end());
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<proto::Session> sessions,
                           LoadSessions(history, &bad));
  tracker::WarnOfBadFiles(bad);
  for (const std::string& id : NewestOfWorkloads(series.runs())) {
    absl::StatusOr<proto::Run> run = history.ReadRun(id);
    if (run.ok()) {
      build.workload_runs.push_back(*std::move(run));
    } else {
      bad.push_back({id, std::string(run.status().message())});
    }
  }
  tracker::Explainer explainer(history);
  build.explain = [&](const tracker::Change& change) {
    return tracker::ChangedWith(tracker::EvidenceOf(change), change, explainer);
  };
  ReportData data = Build(history, std::move(series), sessions, build);
  // The dashboards of a shared history read judgements; a folder has none, and
  // is spared the work.
  if (tracker::IsStoreUrl(history.dir())) {
    tracker::KeepJudgements(history, JudgementsOf(data));
  }
  for (const tracker::BadFile& file : bad) {
    data.warnings.push_back(
        absl::StrCat("Skipped ", file.path, ": ", file.reason));
  }
  return data;
}

}  // namespace

absl::StatusOr<int> RunReport(const ReportCommand& options, std::ostream& log,
                              std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string format, FormatOf(options));
  if (format == "pdf" && options.out == "-") {
    return absl::InvalidArgumentError(
        "--out=-: a PDF goes to a file, expected a path");
  }
  const bool is_page = format == "html" || format == "pdf";
  OPTRAIL_ASSIGN_OR_RETURN(const ReportData data, Load(options, is_page));

  std::string text;
  if (format == "json") {
    text = WriteJsonReport(data);
  } else if (format == "markdown") {
    text = WriteMarkdownReport(data);
  } else {
    text = WriteHtmlReport(data);
  }
  if (format == "pdf") {
    OPTRAIL_ASSIGN_OR_RETURN(text, PrintToPdf(text));
  }
  if (options.out == "-") {
    out << text;
    return 0;
  }
  OPTRAIL_RETURN_IF_ERROR(WriteOutput(options.out, text));
  // The page counts in the same way: other metrics stand beside the time.
  const auto main =
      std::count_if(data.series.begin(), data.series.end(),
                    [](const SeriesView& series) { return series.main; });
  const auto others = static_cast<int64_t>(data.series.size()) - main;
  log << options.out << ": " << main << " series, "
      << (others > 0 ? absl::StrCat(others, " of other metrics, ") : "")
      << data.sessions.size()
      << (data.sessions.size() == 1 ? " tuning session, "
                                    : " tuning sessions, ")
      << text.size() << " bytes\n";
  if (data.series.empty() && data.sessions.empty()) {
    log << tracker::EmptyHistoryText(data.source, "runs or sessions") << "\n";
  }
  return 0;
}

}  // namespace optrail::reports
