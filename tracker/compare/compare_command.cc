#include "tracker/compare/compare_command.h"

#include <iostream>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/exit_code.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/markdown.h"
#include "base/text/prose.h"
#include "tracker/command/filter_values.h"
#include "tracker/compare/compare.h"
#include "tracker/compare/learning_runs.h"
#include "tracker/compare/row_table.h"
#include "tracker/history/selectors.h"
#include "tracker/import/import.h"
#include "tracker/import/machine_ids.h"
#include "tracker/judge/evidence.h"

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

// A side that is a file's name with a dot is that file; a commit seldom has
// one.
bool NamesFiles(const std::string& text, const CommonOptions& common) {
  return absl::StrContains(text, ',') || absl::StrContains(text, '/') ||
         absl::EndsWith(text, ".json") ||
         (absl::StrContains(text, '.') &&
          FileExists(JoinPath(common.workspace, text)));
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

// A suite on a hardware: runs of one are compared with each other alone.
using Group = std::pair<std::string, std::string>;

std::map<Group, std::vector<RunInfo>> ByGroup(std::vector<RunInfo> runs) {
  std::map<Group, std::vector<RunInfo>> groups;
  for (RunInfo& run : runs) {
    groups[{run.header.suite(), run.header.hardware().id()}].push_back(
        std::move(run));
  }
  return groups;
}

std::string GroupsText(const std::map<Group, std::vector<RunInfo>>& groups) {
  return absl::StrJoin(groups, ", ", [](std::string* out, const auto& group) {
    absl::StrAppend(out, "suite '", group.first.first, "' on ",
                    group.first.second);
  });
}

absl::StatusOr<NamedRuns> Read(const History& history,
                               const std::vector<RunInfo>& infos) {
  NamedRuns named;
  std::vector<std::string> names;
  for (const RunInfo& info : infos) {
    OPTRAIL_ASSIGN_OR_RETURN(proto::Run run, history.ReadRun(info.id()));
    names.push_back(absl::StrCat(run.run_id(), " (", run.suite(), " on ",
                                 run.hardware().id(), ", commit ",
                                 CommitText(run.commit()), ")"));
    named.runs.push_back(std::move(run));
  }
  named.name = absl::StrJoin(names, ", ");
  return named;
}

struct SidesToCompare {
  NamedRuns a, b;
};

// A and B where at least one is in the history, for each suite and hardware
// that both have.
class HistorySides {
 public:
  HistorySides(const CompareCommand& options, const History& history)
      : options_(options), history_(history) {}

  absl::StatusOr<std::vector<SidesToCompare>> Find() const {
    if (NamesFiles(options_.b, options_.common)) {
      OPTRAIL_ASSIGN_OR_RETURN(NamedRuns b,
                               FromFiles(options_.b, options_.common));
      return WithFiles(options_.a, std::move(b), /*files_are_a=*/false);
    }
    if (NamesFiles(options_.a, options_.common)) {
      OPTRAIL_ASSIGN_OR_RETURN(NamedRuns a,
                               FromFiles(options_.a, options_.common));
      return WithFiles(options_.b, std::move(a), /*files_are_a=*/true);
    }
    OPTRAIL_ASSIGN_OR_RETURN(const auto candidates,
                             Groups(options_.b, Wanted()));
    std::vector<SidesToCompare> sides;
    std::string baselines_text;
    std::set<Group> missing;  // of B
    bool is_same = false;
    for (const auto& [group, infos] : candidates) {
      OPTRAIL_ASSIGN_OR_RETURN(const auto baselines, Baselines(group));
      baselines_text = GroupsText(baselines);
      for (const auto& [of_a, runs] : baselines) {
        if (candidates.count(of_a) == 0) missing.insert(of_a);
      }
      const auto found = baselines.find(group);
      if (found == baselines.end()) {
        NoteMissing("A", "B", group);
        continue;
      }
      // Two names of one run, as where A is the newest commit and B the
      // default.
      if (options_.a != options_.b && RunIds(found->second) == RunIds(infos)) {
        is_same = true;
        continue;
      }
      SidesToCompare& both = sides.emplace_back();
      OPTRAIL_ASSIGN_OR_RETURN(both.a, Read(history_, found->second));
      OPTRAIL_ASSIGN_OR_RETURN(both.b, Read(history_, infos));
    }
    for (const Group& group : missing) NoteMissing("B", "A", group);
    if (!sides.empty()) return sides;
    if (is_same) {
      return absl::InvalidArgumentError(absl::StrCat(
          "A, \"", options_.a, "\", and B, \"", options_.b,
          "\", name the same runs: expected two sides; next: optrail compare ",
          "latest~1 latest, or another B (optrail log lists commits)"));
    }
    lacks_runs_ = true;
    return absl::NotFoundError(absl::StrCat(
        "A and B have no suite and hardware in common: A has ", baselines_text,
        ", B ", GroupsText(candidates), "; next: optrail log runs"));
  }

  // After Find() failed: both sides are known, and runs of one are missing.
  bool lacks_runs() const { return lacks_runs_; }

 private:
  static std::set<std::string> RunIds(const std::vector<RunInfo>& infos) {
    std::set<std::string> ids;
    for (const RunInfo& info : infos) ids.insert(info.header.run_id());
    return ids;
  }

  static void NoteMissing(absl::string_view side, absl::string_view other,
                          const Group& group) {
    PrintNotices(
        {absl::StrCat(side, " has no run of suite '", group.first, "' on ",
                      group.second, ", which ", other, " has: not compared")});
  }

  RunFilter Wanted() const {
    RunFilter filter;
    filter.suite = options_.suite;
    filter.hardware_id = options_.hardware_id;
    return filter;
  }

  absl::StatusOr<std::map<Group, std::vector<RunInfo>>> Groups(
      const std::string& text, const RunFilter& filter) const {
    const CommitResolver git = GitIn(options_.common.workspace);
    absl::StatusOr<Selection> selected =
        SelectRuns(history_, text, git, filter);
    if (!selected.ok()) {
      // A name that the history or git knows is no typing error.
      lacks_runs_ = absl::IsNotFound(selected.status()) &&
                    Select(history_, text, git, RunFilter()).ok();
      return selected.status();
    }
    PrintNotices(selected->notes);
    return ByGroup(std::move(selected->runs));
  }

  // "latest~1" counts the runs of B's suite and hardware.
  absl::StatusOr<std::map<Group, std::vector<RunInfo>>> Baselines(
      const Group& group) const {
    RunFilter filter = Wanted();
    if (IsLatest(options_.a)) {
      filter.suite = group.first;
      filter.hardware_id = group.second;
    }
    return Groups(options_.a, filter);
  }

  // One side is files: those have one hardware, and their suite need not be
  // called as in the history.
  absl::StatusOr<std::vector<SidesToCompare>> WithFiles(
      const std::string& in_history, NamedRuns files, bool files_are_a) const {
    OPTRAIL_RETURN_IF_ERROR(UseMachine(&files));
    RunFilter filter = Wanted();
    if (IsLatest(in_history)) {
      filter.hardware_id = files.runs.back().hardware().id();
    }
    OPTRAIL_ASSIGN_OR_RETURN(const auto groups, Groups(in_history, filter));
    if (groups.size() > 1) return NeedsOne(in_history, groups);
    OPTRAIL_ASSIGN_OR_RETURN(NamedRuns runs,
                             Read(history_, groups.begin()->second));
    std::vector<SidesToCompare> sides(1);
    sides[0].a = files_are_a ? std::move(files) : std::move(runs);
    sides[0].b = files_are_a ? std::move(runs) : std::move(files);
    return sides;
  }

  // Files are of this machine as `optrail import` takes them for.
  absl::Status UseMachine(NamedRuns* files) const {
    OPTRAIL_ASSIGN_OR_RETURN(const MachineIds ids,
                             MachineIds::Of(history_, options_.machine));
    for (proto::Run& run : files->runs) ids.Use(&run);
    return absl::OkStatus();
  }

  static absl::Status NeedsOne(
      const std::string& text,
      const std::map<Group, std::vector<RunInfo>>& groups) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' has runs of ", GroupsText(groups),
                     ": expected --suite or --hardware to name one"));
  }

  const CompareCommand& options_;
  const History& history_;
  mutable bool lacks_runs_ = false;
};

// None where one of them has no run of what was requested or where that is
// damaged, which is logged.
absl::StatusOr<std::vector<SidesToCompare>> FindSides(
    const CompareCommand& options, const History& history) {
  if (!NamesFiles(options.a, options.common) ||
      !NamesFiles(options.b, options.common)) {
    const HistorySides finder(options, history);
    absl::StatusOr<std::vector<SidesToCompare>> found = finder.Find();
    if (found.ok() ||
        !(finder.lacks_runs() || absl::IsDataLoss(found.status()))) {
      return found;
    }
    std::cerr << "nothing is compared: "
              << EscapeForTerminal(found.status().message()) << "\n";
    return std::vector<SidesToCompare>();
  }
  std::vector<SidesToCompare> sides(1);
  OPTRAIL_ASSIGN_OR_RETURN(sides[0].b, FromFiles(options.b, options.common));
  OPTRAIL_ASSIGN_OR_RETURN(sides[0].a, FromFiles(options.a, options.common));
  return sides;
}

// Returns the runs of the suite of the side that is in the history.
absl::StatusOr<std::vector<proto::Run>> RunsToLearnFrom(
    const CompareCommand& options, const History& history,
    const SidesToCompare& sides) {
  const bool b_is_files = NamesFiles(options.b, options.common);
  if (b_is_files && NamesFiles(options.a, options.common))
    return std::vector<proto::Run>();
  const proto::Run& last = (b_is_files ? sides.a : sides.b).runs.back();
  RunFilter filter;
  filter.suite = last.suite();
  filter.hardware_id = last.hardware().id();
  OPTRAIL_ASSIGN_OR_RETURN(const RunList list, history.ListRuns(filter));
  return LearningRuns(history, list.runs, sides.a.Pointers(),
                      sides.b.Pointers(), LearningOptions());
}

absl::Status CheckNumbers(const CompareCommand& options) {
  OPTRAIL_RETURN_IF_ERROR(CheckFlag(options.min_effect >= 0, "min_effect",
                                    options.min_effect, "at least 0"));
  OPTRAIL_RETURN_IF_ERROR(CheckFlag(options.detect_effect > 0, "detect_effect",
                                    options.detect_effect, "more than 0"));
  return CheckFlag(
      options.false_alarm_rate > 0 && options.false_alarm_rate < .5,
      "false_alarm_rate", options.false_alarm_rate,
      "more than 0 and less than 0.5");
}

// The next step to the cause of what is slower most; "" where B is no later
// commit than A.
std::string NextOf(const Comparison& comparison) {
  const Row* worst = nullptr;
  for (const Row& row : comparison.rows) {
    if (row.verdict == Verdict::kSlower &&
        (worst == nullptr || row.worse_by > worst->worse_by)) {
      worst = &row;
    }
  }
  if (worst == nullptr) return "";
  Evidence suspects;
  suspects.good = &worst->baseline.commit;
  suspects.bad = &worst->candidate.commit;
  CountSuspects(suspects);
  if (suspects.suspects.value_or(1) < 1) return "";
  return NextCommand(suspects, worst->name, worst->metric);
}

void Print(const CompareCommand& options, const SidesToCompare& sides,
           const Comparison& comparison, std::ostream& out) {
  if (IsForPeople(options.common.format)) {
    std::string text =
        absl::StrCat("A ", EscapeForTerminal(sides.a.name), "\nB ",
                     EscapeForTerminal(sides.b.name), "\n");
    for (const std::string& note : comparison.notes) {
      absl::StrAppend(&text, "note: ", EscapeForTerminal(note), "\n");
    }
    out << (options.common.format == OutputFormat::kMarkdown
                ? BlockForMarkdown(text)
                : WrapProse(text, TerminalWidth()))
        << "\n";
  }
  out << FormatComparison(comparison, options.only_changes,
                          options.common.format, TerminalWidth());
  if (!IsForPeople(options.common.format)) return;
  const std::string next = NextOf(comparison);
  if (next.empty()) return;
  out << "\nnext: "
      << (options.common.format == OutputFormat::kMarkdown
              ? CodeForMarkdown(next)
              : EscapeForTerminal(next))
      << "\n";
}

}  // namespace

absl::StatusOr<int> RunCompare(const CompareCommand& options,
                               std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const auto filter,
                           CompilePattern("filter", options.filter));
  OPTRAIL_ASSIGN_OR_RETURN(const auto metric,
                           CompilePattern("metric", options.metric));
  OPTRAIL_RETURN_IF_ERROR(CheckNumbers(options));
  OPTRAIL_ASSIGN_OR_RETURN(const History history, OpenHistory(options.common));
  OPTRAIL_ASSIGN_OR_RETURN(const RunList list, history.ListRuns());
  const std::string unknown_filter =
      list.runs.empty() || (NamesFiles(options.a, options.common) &&
                            NamesFiles(options.b, options.common))
          ? ""
          : UnknownFilterText(list.runs, {options.suite, options.hardware_id});
  if (!unknown_filter.empty()) {
    std::cerr << "nothing is compared" << unknown_filter << "\n";
    return ToInt(ExitCode::kNotEnoughData);
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<SidesToCompare> all,
                           FindSides(options, history));
  if (all.empty()) return ToInt(ExitCode::kNotEnoughData);
  if (all.size() > 1 && !IsForPeople(options.common.format)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "A and B have ", all.size(),
        " suites or machines in common: expected --suite and --hardware to "
        "name one of them for --format"));
  }
  CompareOptions compare;
  compare.false_alarm_rate =
      options.false_alarm_rate / static_cast<double>(all.size());
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
  int told = 0, failed = 0;
  size_t rows = 0;
  for (const SidesToCompare& sides : all) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<proto::Run> learned,
                             RunsToLearnFrom(options, history, sides));
    compare.history.clear();
    for (const proto::Run& run : learned) compare.history.push_back(&run);
    OPTRAIL_ASSIGN_OR_RETURN(
        const Comparison comparison,
        Compare(sides.a.Pointers(), sides.b.Pointers(), compare));
    if (&sides != &all.front()) out << "\n";
    Print(options, sides, comparison, out);
    told += comparison.CountTold();
    failed += comparison.Count(Verdict::kCrashed) +
              comparison.Count(Verdict::kWrongResult);
    rows += comparison.rows.size();
  }
  if (failed > 0) return ToInt(ExitCode::kCheckFailed);
  if (told > 0) return ToInt(ExitCode::kOk);
  OPTRAIL_ASSIGN_OR_RETURN(const std::string unknown,
                           UnknownMetricText(history, *metric));
  if (!unknown.empty()) {
    std::cerr << "nothing is compared" << unknown << "\n";
  } else if (rows == 0 && !options.filter.empty()) {
    std::cerr << "nothing is compared: no benchmark matches --filter='"
              << options.filter << "'; next: optrail show "
              << all.front().b.Pointers().front()->run_id() << "\n";
  }
  return ToInt(ExitCode::kNotEnoughData);
}

}  // namespace optrail::tracker
