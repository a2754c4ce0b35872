#include "tracker/command/show_command.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <ostream>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "base/exit_code.h"
#include "base/status_macros.h"
#include "base/text/closest.h"
#include "base/text/markdown.h"
#include "base/text/prose.h"
#include "base/text/units.h"
#include "tracker/command/no_runs.h"
#include "tracker/convergence/convergence.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/selectors.h"
#include "tracker/series/series.h"
#include "tracker/series/series_key.h"
#include "tracker/series/value_text.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/measurement_settings_text.h"
#include "tuning/proto/stop_reason.h"
#include "tuning/session/node_calibration.h"
#include "tuning/session/objective.h"

namespace optrail::tracker {
namespace {

std::string HeadLine(const proto::Run& run) {
  return absl::StrCat("run ", run.run_id(), ", suite ", run.suite(), ", ",
                      TimeText(run.started_unix_ns()), " UTC, commit ",
                      CommitText(run.commit()), " on ", run.hardware().id());
}

// "g++ 12.2.0 -O2, Debian 12" and the end of the line; "" if nothing is known.
std::string ToolchainText(const proto::Toolchain& toolchain) {
  std::vector<std::string> known;
  for (std::string text :
       {absl::StrCat(toolchain.compiler(), " ", toolchain.flags()),
        toolchain.os()}) {
    absl::StripAsciiWhitespace(&text);
    if (!text.empty()) known.push_back(EscapeForTerminal(text));
  }
  return known.empty() ? "" : absl::StrCat(absl::StrJoin(known, ", "), "\n");
}

// How it was measured; "" if nothing is known.
std::string MeasuredText(const proto::MeasurementSettings& settings) {
  const std::vector<std::string> known = tuning::SettingsTexts(settings);
  if (known.empty()) return "";
  return WrapProse(
      absl::StrCat("measured with ",
                   EscapeForTerminal(absl::StrJoin(known, ", ")), "\n"),
      TerminalWidth());
}

// Returns how many benchmarks match. `names` gets those of the run.
int ShowRun(const proto::Run& run, const RE2& filter, OutputFormat format,
            std::vector<std::string>* names, std::ostream& out) {
  if (IsForPeople(format)) {
    const std::string head = absl::StrCat(
        WrapProse(absl::StrCat(EscapeForTerminal(HeadLine(run)), "\n"),
                  TerminalWidth()),
        ToolchainText(run.toolchain()), MeasuredText(run.settings()));
    out << (format == OutputFormat::kMarkdown ? BlockForMarkdown(head) : head)
        << "\n";
  }
  const std::vector<Series> all = BuildSeries({&run});
  // People read what failed only where something did, and the run above.
  const bool with_detail =
      !IsForPeople(format) ||
      std::any_of(all.begin(), all.end(), [](const Series& series) {
        return !series.points.back().detail.empty();
      });
  std::vector<Column> columns = {
      {"benchmark", Align::kLeft, "", Clip::kNever},
      {"metric"},
      {"outcome"},
      {"median", Align::kRight, "value"},
      {"spread", Align::kRight, "process_spread"},
      {"processes", Align::kRight},
      {"roofline", Align::kRight, "roofline_fraction"},
      {"config", Align::kLeft, "", Clip::kFold}};
  if (with_detail) columns.push_back({"detail", Align::kLeft, "", Clip::kFold});
  if (!IsForPeople(format)) {
    columns.push_back({"run_id"});
    columns.push_back({"commit"});
  }
  Table table(std::move(columns));
  bool all_bound = true;
  for (const Series& series : all) {
    const std::string name = DisplayName(series.key.benchmark);
    names->push_back(name);
    if (!MatchesPart(filter, name)) continue;
    const Point& point = series.points.back();
    all_bound &= IsBoundByRoofline(point.roofline_fraction.value_or(0));
    const double spread = point.value && *point.value > 0
                              ? (point.high - point.low) / *point.value
                              : 0;
    std::vector<Cell> row = {
        name,
        series.key.metric,
        tuning::OutcomeName(point.outcome),
        point.value ? Cell::Number(*point.value,
                                   FormatValue(point.value, series.key.unit))
                    : Cell::None(),
        point.value ? Cell::Number(spread, FormatPercent(spread))
                    : Cell::None(),
        Cell::Integer(point.processes.size()),
        point.roofline_fraction && series.key.metric == "time"
            ? Cell::Number(*point.roofline_fraction,
                           RooflineText(*point.roofline_fraction))
            : Cell::None(),
        point.attributes->config};
    if (with_detail) row.push_back(point.detail);
    if (!IsForPeople(format)) {
      row.push_back(run.run_id());
      row.push_back(run.commit().id());
    }
    table.AddRow(std::move(row));
  }
  PrintTable(table, format, out);
  if (!all_bound) PrintNotices({std::string(kNoBoundText)});
  return table.num_rows();
}

// Describes the session and its results, for people.
void DescribeSession(const proto::Session& session,
                     const SessionAnalysis& analysis, std::ostream& out) {
  std::vector<std::string> lines = {
      absl::StrCat("session ", session.session_id(), ", ", analysis.task_text,
                   " on ", session.hardware().id(), ", commit ",
                   CommitText(session.commit())),
      absl::StrCat(session.strategy(), ", seed ", session.seed(), ", in ",
                   FormatDurationNs(session.elapsed_ns()), ", stopped by ",
                   tuning::StopReasonName(session.stop_reason())),
      ProgressText(analysis),
      WinnerText(analysis).empty() ? "winner none" : WinnerText(analysis),
      FinalistsText(analysis)};
  if (analysis.warm_start_trials > 0) {
    lines.push_back(absl::StrCat("the first ", analysis.warm_start_trials,
                                 " trials below are of earlier sessions"));
  }
  if (session.source_session_ids_size() > 0) {
    lines.push_back(
        absl::StrCat("could learn from ",
                     absl::StrJoin(session.source_session_ids(), ", ")));
  }
  for (const proto::MeasuringNode& node : session.nodes()) {
    lines.push_back(tuning::NodeText(node));
  }
  for (const std::string& line : lines) {
    if (line.empty()) continue;
    out << WrapProse(absl::StrCat(EscapeForTerminal(line), "\n"),
                     TerminalWidth());
  }
  out << MeasuredText(session.settings()) << "\n";
}

// Of time alone its columns are "time" and "best so far", else one for each of
// what was optimised.
void ShowSession(const proto::Session& session, OutputFormat format,
                 std::ostream& out) {
  const SessionAnalysis analysis = AnalyzeSession(session);
  if (IsForPeople(format)) {
    DescribeSession(session, analysis, out);
  } else {
    std::vector<std::string> lost;
    for (const proto::MeasuringNode& node : session.nodes()) {
      if (tuning::LostBecause(node).empty()) continue;
      lost.push_back(tuning::NodeText(node));
    }
    PrintNotices(lost);
  }
  const bool is_time = analysis.is_time();
  std::vector<Column> columns = {{"trial", Align::kRight}, {"outcome"}};
  if (is_time) {
    columns.push_back({"time", Align::kRight, "time_ns"});
    columns.push_back({"best so far", Align::kRight, "best_time_ns"});
  } else {
    for (const proto::Objective& objective : analysis.objectives) {
      columns.push_back({objective.metric(), Align::kRight});
    }
  }
  columns.push_back({"config", Align::kLeft, "", Clip::kFold});
  columns.push_back({"detail"});
  Table table(std::move(columns));
  const auto cell = [](absl::optional<double> value, const std::string& unit) {
    return value && std::isfinite(*value)
               ? Cell::Number(*value, FormatValue(*value, unit))
               : Cell::None();
  };
  for (int i = 0; i < session.trials_size(); ++i) {
    const proto::Trial& trial = session.trials(i);
    std::vector<Cell> row = {Cell::Integer(i + 1),
                             tuning::OutcomeName(trial.outcome())};
    for (const proto::Objective& objective : analysis.objectives) {
      row.push_back(cell(tuning::ValueOf(trial, objective), objective.unit()));
    }
    // Trials of earlier sessions are no progress of this one.
    const int own = i - analysis.warm_start_trials;
    if (is_time) {
      row.push_back(own < 0 ? Cell::None()
                            : cell(analysis.best_so_far[own], "ns"));
    }
    row.push_back(tuning::CanonicalText(trial.config()));
    row.push_back(trial.detail());
    table.AddRow(std::move(row));
  }
  PrintTable(table, format, out);
}

void ShowSeries(const Series& series, OutputFormat format, std::ostream& out) {
  if (IsForPeople(format)) {
    const SeriesKey& key = series.key;
    const std::string heading = absl::StrCat(
        "series ", DisplayName(key.benchmark), ", ", key.metric, " on ",
        key.hardware_id,
        key.branch.empty() ? "" : absl::StrCat(", branch ", key.branch));
    out << WrapProse(absl::StrCat(EscapeForTerminal(heading), "\n\n"),
                     TerminalWidth());
  }
  Table table({{"started (UTC)", Align::kLeft, "started_utc"},
               {"commit", Align::kLeft, "", Clip::kNever},
               {"median", Align::kRight, "value"},
               {"low", Align::kRight},
               {"high", Align::kRight},
               {"processes", Align::kRight},
               {"outcome"},
               {"config", Align::kLeft, "", Clip::kFold},
               {"note"}});
  int epoch = 0;
  const Point* last = nullptr;  // the last whose settings are known
  for (const Point& point : series.points) {
    const auto cell = [&](double value) {
      return point.value
                 ? Cell::Number(value, FormatValue(value, series.key.unit))
                 : Cell::None();
    };
    const bool new_epoch = point.epoch != epoch;
    epoch = point.epoch;
    std::string note = point.detail;
    if (new_epoch) {
      note = absl::StrCat("new epoch: ", series.epochs[epoch].change);
    } else if (last != nullptr && note.empty()) {
      note = DescribeSettingsChange(series, *last, point);
    }
    if (point.settings != Point::kUnknownSettings) last = &point;
    table.AddRow({TimeText(point.runs->first_started_unix_ns),
                  CommitText(point.runs->commit), cell(point.value.value_or(0)),
                  cell(point.low), cell(point.high),
                  Cell::Integer(point.processes.size()),
                  tuning::OutcomeName(point.outcome), point.attributes->config,
                  note});
  }
  PrintTable(table, format, out);
}

absl::StatusOr<std::vector<Series>> FindSeries(
    const History& history, std::function<bool(const SeriesKey&)> wanted) {
  SeriesQuery query;
  query.wanted = std::move(wanted);
  OPTRAIL_ASSIGN_OR_RETURN(LoadedSeries loaded, LoadSeries(history, query));
  WarnOfBadFiles(loaded.bad_files);
  PrintNotices(loaded.notices);
  return std::move(loaded.series);
}

// The one series of the benchmark `name`, or whose name or key begins with it;
// of its metrics the time. None, or InvalidArgument that lists them, if it is
// not one.
absl::StatusOr<absl::optional<Series>> SeriesNamed(const History& history,
                                                   const std::string& name) {
  OPTRAIL_ASSIGN_OR_RETURN(
      std::vector<Series> found, FindSeries(history, [&](const SeriesKey& key) {
        return absl::StartsWith(CanonicalText(key), name) ||
               absl::StartsWith(DisplayName(key.benchmark), name);
      }));
  const auto narrow = [&found](const auto& is_meant) {
    if (!std::any_of(found.begin(), found.end(), is_meant)) return;
    found.erase(
        std::remove_if(found.begin(), found.end(),
                       [&](const Series& series) { return !is_meant(series); }),
        found.end());
  };
  narrow([&](const Series& series) {
    return DisplayName(series.key.benchmark) == name;
  });
  narrow([](const Series& series) { return series.key.metric == "time"; });
  if (found.empty()) return absl::optional<Series>();
  if (found.size() == 1) return absl::make_optional(std::move(found[0]));
  constexpr size_t kShown = 5;
  std::vector<std::string> texts;
  for (const Series& series : found) texts.push_back(series.text);
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' could be any of: ", JoinFirst(texts, kShown)));
}

// A filter chooses among the benchmarks of a run; other things have none.
absl::Status RefuseFilter(const ShowCommand& options, absl::string_view kind) {
  if (options.filter.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--filter=", options.filter, ": '", options.what, "' is a ", kind,
      "; expected a run or commit, whose benchmarks it chooses"));
}

}  // namespace

absl::StatusOr<int> RunShow(const ShowCommand& options, std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const auto filter,
                           CompilePattern("filter", options.filter));
  OPTRAIL_ASSIGN_OR_RETURN(const History history, OpenHistory(options.common));
  if (ParseSeriesKey(options.what).ok()) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Series> found,
                             FindSeries(history, [&](const SeriesKey& key) {
                               return CanonicalText(key) == options.what;
                             }));
    if (!found.empty()) {
      OPTRAIL_RETURN_IF_ERROR(RefuseFilter(options, "series"));
      ShowSeries(found.front(), options.common.format, out);
      return 0;
    }
    return absl::NotFoundError(absl::StrCat("no series '", options.what,
                                            "' in ", history.dir(),
                                            "; next: optrail log series"));
  }
  OPTRAIL_ASSIGN_OR_RETURN(const SessionList sessions, history.ListSessions());
  for (const SessionInfo& info : sessions.sessions) {
    if (info.id() != options.what) continue;
    OPTRAIL_RETURN_IF_ERROR(RefuseFilter(options, "session"));
    OPTRAIL_ASSIGN_OR_RETURN(const proto::Session session,
                             history.ReadSession(info.id()));
    ShowSession(session, options.common.format, out);
    return 0;
  }
  const absl::StatusOr<Selection> selected =
      SelectRuns(history, options.what, GitIn(options.common.workspace));
  if (absl::IsNotFound(selected.status())) {
    OPTRAIL_RETURN_IF_ERROR(CheckHasRuns(history, options.what, "show"));
  }
  if (absl::IsNotFound(selected.status()) && !options.what.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(const absl::optional<Series> series,
                             SeriesNamed(history, options.what));
    if (series.has_value()) {
      OPTRAIL_RETURN_IF_ERROR(RefuseFilter(options, "series"));
      ShowSeries(*series, options.common.format, out);
      return 0;
    }
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::vector<Series> all,
        FindSeries(history, [](const SeriesKey&) { return true; }));
    std::vector<std::string> names;
    for (const Series& one : all) {
      names.push_back(DisplayName(one.key.benchmark));
    }
    return absl::NotFoundError(
        absl::StrCat(selected.status().message(),
                     "; and no benchmark's name begins so: optrail log series "
                     "lists them",
                     DidYouMean(options.what, names)));
  }
  if (absl::IsDataLoss(selected.status())) {
    std::cerr << "nothing is shown: "
              << EscapeForTerminal(selected.status().message()) << "\n";
    return ToInt(ExitCode::kNotEnoughData);
  }
  if (!selected.ok()) return selected.status();
  PrintNotices(selected->notes);
  if (selected->runs.size() > 1 && !IsForPeople(options.common.format)) {
    std::vector<std::string> ids;
    for (const RunInfo& info : selected->runs) ids.push_back(info.id());
    return absl::InvalidArgumentError(
        absl::StrCat("'", options.what, "' has ", ids.size(),
                     " runs, which are no single document: expected one of ",
                     absl::StrJoin(ids, ", "), " for --format"));
  }
  int shown = 0;
  std::vector<std::string> names;
  for (const RunInfo& info : selected->runs) {
    OPTRAIL_ASSIGN_OR_RETURN(const proto::Run run, history.ReadRun(info.id()));
    shown += ShowRun(run, *filter, options.common.format, &names, out);
  }
  if (shown > 0 || options.filter.empty()) return 0;
  // A pattern is seldom a whole name: "sofmax" means "softmax/cpu/...".
  const size_t count = names.size();
  for (size_t i = 0; i < count; ++i) {
    names.push_back(names[i].substr(0, names[i].find('/')));
  }
  std::cerr << "no benchmark of '" << EscapeForTerminal(options.what)
            << "' matches --filter=" << EscapeForTerminal(options.filter)
            << "; it has " << count
            << EscapeForTerminal(DidYouMean(options.filter, names)) << "\n";
  return ToInt(ExitCode::kNotEnoughData);
}

}  // namespace optrail::tracker
