#include "tracker/compare/compare_command.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "tracker/command/command_support.h"
#include "tracker/compare/compare.h"
#include "tracker/gate/gate_report.h"
#include "tracker/import/import.h"
#include "tracker/series/series.h"
#include "tuning/proto/measurement_settings_text.h"

namespace optrail::tracker {
namespace {

// Runs to compare and what to call them.
struct NamedRuns {
  std::string name;
  std::vector<proto::Run> runs;

  std::vector<const proto::Run*> Pointers() const {
    std::vector<const proto::Run*> pointers;
    for (const proto::Run& run : runs) pointers.push_back(&run);
    return pointers;
  }
};

bool NamesFiles(const std::string& text) {
  return absl::StrContains(text, ',') || absl::StrContains(text, '/') ||
         absl::EndsWith(text, ".json");
}

absl::StatusOr<NamedRuns> FromFiles(const std::string& text,
                                    const CommonOptions& common) {
  ImportOptions import;
  import.files_are_processes = true;
  import.default_started_unix_ns = NowUnixNs(common);
  std::vector<std::string> files;
  for (const absl::string_view file : absl::StrSplit(text, ',')) {
    files.push_back(JoinPath(common.workspace, file));
  }
  NamedRuns named;
  named.name = text;
  OPTRAIL_ASSIGN_OR_RETURN(named.runs, ImportFiles(files, import));
  return named;
}

// The runs that `text` names, alike to the last of them or, given `like`, to
// that run: of the same suite on the same hardware.
absl::StatusOr<NamedRuns> FromHistory(const History& history,
                                      const std::string& text,
                                      const proto::Run* like) {
  RunFilter filter;
  if (like != nullptr && absl::StartsWith(text, "latest")) {
    filter.suite = like->suite();
    filter.hardware_id = like->hardware().id();
  }
  std::vector<std::string> notes;
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<RunInfo> infos,
                           history.Resolve(text, filter, &notes));
  PrintNotices(notes);
  const proto::Run& model = like != nullptr ? *like : infos.back().header;
  NamedRuns named;
  std::vector<std::string> names;
  for (const RunInfo& info : infos) {
    if (infos.size() > 1 &&
        (info.header.suite() != model.suite() ||
         info.header.hardware().id() != model.hardware().id())) {
      continue;
    }
    OPTRAIL_ASSIGN_OR_RETURN(proto::Run run, history.ReadRun(info.id()));
    names.push_back(absl::StrCat(run.run_id(), " (", run.suite(), ", commit ",
                                 CommitText(run.commit()), ")"));
    named.runs.push_back(std::move(run));
  }
  if (named.runs.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "'", text, "' has no run of suite '", model.suite(), "' on ",
        model.hardware().id(), "; next: optrail log runs"));
  }
  named.name = absl::StrJoin(names, ", ");
  return named;
}

// Runs like B's last that noise can be learned from, those nearest to it in
// time: of its suite, hardware, toolchain, settings and branch.
absl::StatusOr<std::vector<proto::Run>> LearningRuns(const History& history,
                                                     const proto::Run& last) {
  constexpr size_t kMost = 60;
  RunFilter filter;
  filter.suite = last.suite();
  filter.hardware_id = last.hardware().id();
  OPTRAIL_ASSIGN_OR_RETURN(RunList list, history.ListRuns(filter));
  std::vector<RunInfo> alike;
  for (RunInfo& info : list.runs) {
    if (info.header.commit().branch() == last.commit().branch() &&
        !info.header.commit().dirty() &&
        DescribeToolchainChange(info.header.toolchain(), last.toolchain())
            .empty() &&
        tuning::DescribeSettingsChange(info.header.settings(), last.settings())
            .empty()) {
      alike.push_back(std::move(info));
    }
  }
  const auto distance = [&](const RunInfo& info) {
    return std::abs(info.header.started_unix_ns() - last.started_unix_ns());
  };
  std::stable_sort(alike.begin(), alike.end(),
                   [&](const RunInfo& a, const RunInfo& b) {
                     return distance(a) < distance(b);
                   });
  if (alike.size() > kMost) alike.resize(kMost);
  std::vector<proto::Run> runs;
  for (const RunInfo& info : alike) {
    // What cannot be read teaches nothing.
    absl::StatusOr<proto::Run> run = history.ReadRun(info.id());
    if (run.ok()) runs.push_back(*std::move(run));
  }
  return runs;
}

}  // namespace

absl::StatusOr<int> RunCompare(const CompareCommand& options,
                               std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const auto filter,
                           CompilePattern("filter", options.filter));
  OPTRAIL_ASSIGN_OR_RETURN(const auto metric,
                           CompilePattern("metric", options.metric));
  OPTRAIL_RETURN_IF_ERROR(CheckFlag(options.min_effect >= 0, "min_effect",
                                    options.min_effect, "at least 0"));
  OPTRAIL_RETURN_IF_ERROR(CheckFlag(options.detect_effect > 0, "detect_effect",
                                    options.detect_effect, "more than 0"));
  OPTRAIL_RETURN_IF_ERROR(
      CheckFlag(options.false_alarm_rate > 0 && options.false_alarm_rate < .5,
                "false_alarm_rate", options.false_alarm_rate,
                "more than 0 and less than 0.5"));
  OPTRAIL_ASSIGN_OR_RETURN(const History history, OpenHistory(options.common));
  absl::StatusOr<NamedRuns> candidate =
      NamesFiles(options.b) ? FromFiles(options.b, options.common)
                            : FromHistory(history,
                                          SelectorOf(options.b, history,
                                                     options.common.workspace),
                                          nullptr);
  if (!candidate.ok()) return candidate.status();
  absl::StatusOr<NamedRuns> baseline =
      NamesFiles(options.a) ? FromFiles(options.a, options.common)
                            : FromHistory(history,
                                          SelectorOf(options.a, history,
                                                     options.common.workspace),
                                          &candidate->runs.back());
  if (!baseline.ok()) return baseline.status();

  CompareOptions compare;
  std::vector<proto::Run> learned;
  if (!NamesFiles(options.b)) {
    OPTRAIL_ASSIGN_OR_RETURN(learned,
                             LearningRuns(history, candidate->runs.back()));
  }
  for (const proto::Run& run : learned) compare.history.push_back(&run);
  compare.false_alarm_rate = options.false_alarm_rate;
  compare.threshold =
      [&](absl::string_view name,
          absl::string_view metric_name) -> absl::optional<Threshold> {
    if (!MatchesPart(*filter, name) || !MatchesWhole(*metric, metric_name)) {
      return absl::nullopt;
    }
    Threshold threshold;
    threshold.min_effect = options.min_effect;
    threshold.detect_effect = options.detect_effect;
    return threshold;
  };
  OPTRAIL_ASSIGN_OR_RETURN(
      const Comparison comparison,
      Compare(baseline->Pointers(), candidate->Pointers(), compare));
  if (IsForPeople(options.common.format)) {
    out << "A " << EscapeForTerminal(baseline->name) << "\nB "
        << EscapeForTerminal(candidate->name) << "\n";
    for (const std::string& note : comparison.notes) {
      out << "note: " << EscapeForTerminal(note) << "\n";
    }
    out << "\n";
  }
  out << FormatComparison(comparison, options.only_changes,
                          options.common.format, TerminalWidth());
  const int told = comparison.Count(Verdict::kUnchanged) +
                   comparison.Count(Verdict::kSlower) +
                   comparison.Count(Verdict::kSlowerInMostSamples) +
                   comparison.Count(Verdict::kFaster);
  return told > 0 ? 0 : 3;
}

}  // namespace optrail::tracker
