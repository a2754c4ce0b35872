#include "tracker/judge/changes_command.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/exit_code.h"
#include "base/status_macros.h"
#include "base/text/markdown.h"
#include "base/text/prose.h"
#include "base/text/table.h"
#include "tracker/command/filter_values.h"
#include "tracker/compare/verdict.h"
#include "tracker/explain/explain.h"
#include "tracker/history/history.h"
#include "tracker/history/index/history_index.h"
#include "tracker/judge/changes_table.h"
#include "tracker/judge/evidence.h"
#include "tracker/judge/fold_memory.h"
#include "tracker/judge/judge.h"
#include "tracker/notify/notify.h"
#include "tracker/series/series.h"
#include "tracker/series/series_key.h"
#include "tracker/series/shared_names.h"
#include "tracker/triage/triage.h"

namespace optrail::tracker {
namespace {

// Sorts changes that want an answer first, then by how much worse it got.
void SortByUrgency(std::vector<Change>& changes) {
  const auto rank = [](const Change& change) {
    return std::make_tuple(IsNoChangeOfTheCode(change), change.opinion.state,
                           change.kind == ChangeKind::kProvisional,
                           change.IsUndone(), -change.worse_by);
  };
  std::stable_sort(
      changes.begin(), changes.end(),
      [&](const Change& a, const Change& b) { return rank(a) < rank(b); });
}

std::vector<Failure> FailuresOf(const std::vector<Series>& series,
                                const std::vector<Judgement>& judgements) {
  std::vector<Failure> failures;
  for (size_t i = 0; i < series.size(); ++i) {
    if (judgements[i].standing != Verdict::kFailed) continue;
    failures.push_back({&series[i], judgements[i].why,
                        judgements[i].last_worked, judgements[i].first_failed});
  }
  return failures;
}

// A sentence and a command for each change that wants an answer.
void PrintEvidence(const std::vector<Change>& changes,
                   const std::string& history_flag, Explainer& explainer,
                   std::ostream& out) {
  constexpr int kMostShown = 10;
  int alerts = 0;
  for (const Change& change : changes) {
    if (!change.IsAlert() || ++alerts > kMostShown) continue;
    const Evidence evidence = EvidenceOf(change);
    std::string text = absl::StrCat(
        "\n", EscapeForTerminal(EvidenceText(change, evidence)), "\n");
    const std::string command =
        NarrowingCommand(change, evidence, history_flag);
    if (!command.empty()) {
      absl::StrAppend(&text, "  ", EscapeForTerminal(command), "\n");
    }
    for (const std::string& line : ChangedWith(evidence, change, explainer)) {
      absl::StrAppend(&text, "    ", EscapeForTerminal(line), "\n");
    }
    out << WrapProse(text, TerminalWidth());
  }
  if (alerts > kMostShown) {
    out << "\n" << alerts - kMostShown << " more are in the table\n";
  }
}

// Benchmarks that the newest run lacks, which no row has.
void NameMissing(const std::vector<Series>& series,
                 const std::vector<Judgement>& judgements,
                 const std::string& history_flag, std::ostream& out) {
  constexpr int kMostShown = 8;
  int missing = 0;
  for (size_t i = 0; i < series.size(); ++i) {
    const Judgement& judgement = judgements[i];
    if (judgement.standing != Verdict::kMissing) continue;
    if (++missing > kMostShown) continue;
    const SeriesKey& key = series[i].key;
    out << WrapProse(absl::StrCat("  ", VerdictName(judgement.standing), ": ",
                                  EscapeForTerminal(DisplayName(key.benchmark)),
                                  " on ", EscapeForTerminal(key.hardware_id),
                                  ", ", EscapeForTerminal(judgement.why), "\n"),
                     TerminalWidth());
  }
  if (missing > kMostShown) {
    out << "  and " << missing - kMostShown << " more; next: optrail report"
        << history_flag << "\n";
  }
}

// How many series stand how, which are missing, and why the judge could not
// tell of some.
void PrintStandings(const std::vector<Series>& series,
                    const std::vector<Judgement>& judgements,
                    const std::string& history_flag, std::ostream& out) {
  if (judgements.empty()) return;
  std::map<Verdict, int> counts;
  std::map<std::string, int> not_judged;
  for (const Judgement& judgement : judgements) {
    ++counts[judgement.standing];
    if (judgement.standing == Verdict::kNoBaseline ||
        judgement.standing == Verdict::kCannotTell) {
      ++not_judged[judgement.why];
    }
  }
  out << WrapProse(
      absl::StrCat(judgements.size(), " series: ", CountsText(counts), "\n"),
      TerminalWidth());
  NameMissing(series, judgements, history_flag, out);
  std::vector<std::pair<int, std::string>> reasons;
  for (const auto& [why, count] : not_judged) reasons.push_back({-count, why});
  std::sort(reasons.begin(), reasons.end());
  constexpr size_t kMostReasons = 5;
  for (size_t i = 0; i < reasons.size() && i < kMostReasons; ++i) {
    out << WrapProse(
        absl::StrCat("  ", -reasons[i].first, " without a verdict: ",
                     EscapeForTerminal(reasons[i].second), "\n"),
        TerminalWidth());
  }
  if (reasons.size() > kMostReasons) {
    out << "  and " << reasons.size() - kMostReasons << " other reasons\n";
  }
}

// Moves the series to show to the front and returns how many they are: those of
// `metric` or, without one, what each benchmark is judged by first. Times stay
// behind them, as the judge asks them what became of other metrics.
size_t ShownFirst(const RE2* metric, std::vector<Series>& series) {
  const std::vector<bool> main = MainSeries(series);
  std::vector<Series> shown, times;
  for (size_t i = 0; i < series.size(); ++i) {
    const std::string& name = series[i].key.metric;
    if (metric == nullptr ? main[i] : MatchesWhole(*metric, name)) {
      shown.push_back(std::move(series[i]));
    } else if (name == "time") {
      times.push_back(std::move(series[i]));
    }
  }
  const size_t count = shown.size();
  std::move(times.begin(), times.end(), std::back_inserter(shown));
  series = std::move(shown);
  return count;
}

// The changes to show, what wants an answer first.
std::vector<Change> ChangesOf(const std::vector<Judgement>& judgements,
                              const ChangesCommand& options) {
  std::vector<Change> changes;
  for (const Judgement& judgement : judgements) {
    for (const Change& change : judgement.changes) {
      if (!IsListed(change, options.min_effect) ||
          (options.only_new && (IsNoChangeOfTheCode(change) ||
                                change.opinion.state != ChangeState::kNew))) {
        continue;
      }
      changes.push_back(change);
    }
  }
  SortByUrgency(changes);
  return changes;
}

// Nothing was judged, and what was not measured is no pass.
absl::Status SayWhyNothing(const History& history, const SeriesQuery& query,
                           const RE2& metric) {
  OPTRAIL_ASSIGN_OR_RETURN(const RunList all, history.ListRuns());
  if (all.runs.empty()) {
    std::cerr << EmptyHistoryText(history.dir()) << "\n";
    return absl::OkStatus();
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::string unknown_metric,
                           UnknownMetricText(history, metric));
  std::cerr << "no series matches the flags; there are " << all.runs.size()
            << " runs in " << history.dir()
            << UnknownFilterText(all.runs, query.runs) << unknown_metric
            << "; next: `optrail log` lists them with suite, hardware and "
               "branch\n";
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> RunChanges(const ChangesCommand& options,
                               std::ostream& out) {
  OPTRAIL_RETURN_IF_ERROR(CheckFlag(options.min_effect >= 0, "min_effect",
                                    options.min_effect, "at least 0"));
  OPTRAIL_ASSIGN_OR_RETURN(const auto filter,
                           CompilePattern("filter", options.filter));
  OPTRAIL_ASSIGN_OR_RETURN(const auto metric,
                           CompilePattern("metric", options.metric));
  OPTRAIL_ASSIGN_OR_RETURN(const History history, OpenHistory(options.common));
  SeriesQuery query;
  query.runs.suite = options.suite;
  query.runs.hardware_id = options.hardware_id;
  query.runs.branch = options.branch;
  query.wanted = [&](const SeriesKey& key) {
    return MatchesPart(*filter, DisplayName(key.benchmark)) &&
           (key.metric == "time" || MatchesWhole(*metric, key.metric));
  };
  OPTRAIL_ASSIGN_OR_RETURN(LoadedSeries loaded, LoadSeries(history, query));
  std::vector<Series> series = std::move(loaded.series);
  const size_t shown =
      ShownFirst(options.metric.empty() ? nullptr : metric.get(), series);
  WarnOfBadFiles(loaded.bad_files);
  PrintNotices(loaded.notices);
  if (const std::string shared = SharedNamesText(
          FindSharedNames(loaded.runs, series), HistoryFlag(options.common));
      !shared.empty()) {
    PrintNotices({shared});
  }
  OPTRAIL_ASSIGN_OR_RETURN(const LoadedTriage triage, history.LoadTriage());
  WarnOfBadFiles(triage.bad_files);
  const TriageBook book(triage.records, NowUnixNs(options.common));
  JudgeOptions judge;
  judge.runs = &loaded.runs;
  FoldMemory folds(std::move(loaded.folds));
  judge.folds = &folds;
  std::vector<Judgement> judgements = JudgeAll(series, book, judge);
  KeepFolds(history, folds.changed());
  series.erase(series.begin() + shown, series.end());
  judgements.resize(shown);
  std::vector<Change> changes = ChangesOf(judgements, options);
  const std::vector<Failure> failures = FailuresOf(series, judgements);
  const OutputFormat format = options.common.format;
  Explainer explainer(history);
  const std::string history_flag = HistoryFlag(options.common);
  const std::string rows =
      ChangesTable(changes, failures, format, history_flag, explainer)
          .Format(format, TerminalWidth());
  if (!IsForPeople(format)) {
    out << rows;
    NameMissing(series, judgements, history_flag, std::cerr);
  } else if (!series.empty()) {
    const bool has_rows = !changes.empty() || !failures.empty();
    if (has_rows) out << rows;
    std::ostringstream text;
    PrintEvidence(changes, history_flag, explainer, text);
    ChangeCounts counts;
    for (const Change& change : changes) counts.Add(change);
    text << (has_rows ? "\n" : "") << counts.Text(options.min_effect) << "\n";
    PrintStandings(series, judgements, history_flag, text);
    out << (format == OutputFormat::kMarkdown
                ? "\n" + BlockForMarkdown(
                             absl::StripLeadingAsciiWhitespace(text.str()))
                : text.str());
  }
  const bool is_red =
      !failures.empty() ||
      std::any_of(changes.begin(), changes.end(),
                  [](const Change& change) { return change.IsAlert(); });
  if (is_red && !options.alert_command.empty()) {
    changes.erase(
        std::remove_if(changes.begin(), changes.end(),
                       [](const Change& change) { return !change.IsAlert(); }),
        changes.end());
    const absl::Status told =
        RunAlert(options.alert_command,
                 ChangesTable(changes, failures, OutputFormat::kJson,
                              history_flag, explainer)
                     .Format(OutputFormat::kJson));
    if (!told.ok()) std::cerr << "note: " << told.message() << "\n";
  }
  if (series.empty()) {
    OPTRAIL_RETURN_IF_ERROR(SayWhyNothing(history, query, *metric));
    return ToInt(ExitCode::kNotEnoughData);
  }
  return ToInt(is_red ? ExitCode::kCheckFailed : ExitCode::kOk);
}

}  // namespace optrail::tracker
