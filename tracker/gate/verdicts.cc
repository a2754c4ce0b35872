// The conclusions from the rows of a gate: Judge, Conclude and
// RemeasureRequest.

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tracker/compare/row_table.h"
#include "tracker/gate/gate.h"
#include "tracker/judge/evidence.h"

namespace optrail::tracker {
namespace {

// What matters first: what fails, what cannot be told of what may fail, and so
// on for warnings.
int Rank(const GateRow& row) {
  switch (row.action) {
    case proto::FAIL:
      return IsRed(row) ? 0 : 1;
    case proto::WARN:
      return row.row.verdict == Verdict::kCannotTell ? 3 : 2;
    default:
      return row.row.verdict == Verdict::kUnchanged ? 5 : 4;
  }
}

std::string Plural(int count, absl::string_view what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// "window:main:10: 3 earlier runs ...; tag:v1: ...".
std::string BaselineProblems(const GateReport& report) {
  std::vector<std::string> problems;
  for (const GateReport::ResolvedBaseline& baseline : report.baselines) {
    if (baseline.problem.empty()) continue;
    problems.push_back(absl::StrCat(baseline.text, ": ", baseline.problem));
  }
  return absl::StrJoin(problems, "; ");
}

// What others on the machine do to `time` is mostly waiting for a core. Only
// the benchmarks of other tools have another time beside it.
void NoteSharedMachine(GateReport* report) {
  const bool helps = std::any_of(
      report->rows.begin(), report->rows.end(), [](const GateRow& row) {
        return IsUnclear(row) && row.row.metric == "time" &&
               !row.row.key.has_shape();
      });
  if (!helps) return;
  AddNote(
      "`time` counts waiting for a core; where other programs share the "
      "machine, judge the time on the processor, if it was measured: "
      "--metric=cpu_time, or a rule of the policy",
      report);
}

}  // namespace

std::string GateReasonName(GateReason reason) {
  constexpr const char* kNames[] = {
      "green",        "regression",   "identical",
      "no_candidate", "missing",      "damaged_record",
      "no_baseline",  "no_benchmark", "inconclusive"};
  return kNames[static_cast<size_t>(reason)];
}

void AddNote(std::string note, GateReport* report) {
  auto& notes = report->notes;
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) {
    notes.push_back(std::move(note));
  }
}

int GateReport::CountRed() const {
  return static_cast<int>(std::count_if(rows.begin(), rows.end(), IsRed));
}

int GateReport::CountCannotTell() const {
  return static_cast<int>(std::count_if(rows.begin(), rows.end(), IsUnclear));
}

CompareOptions CompareOptionsFor(const Policy& policy, int comparisons,
                                 int looks) {
  CompareOptions options;
  options.false_alarm_rate =
      policy.proto().run_false_alarm_rate() / std::max(1, comparisons);
  options.looks = std::max(1, looks);
  options.power = policy.proto().power();
  options.min_processes = policy.proto().min_processes();
  if (policy.proto().on_other_settings() == proto::IGNORE) {
    options.settings_error = 0;
  }
  options.threshold =
      [&policy](absl::string_view name,
                absl::string_view metric) -> absl::optional<Threshold> {
    const RuleView rule = policy.RuleFor(name, metric);
    if (rule.action == proto::IGNORE) return absl::nullopt;
    return rule.threshold;
  };
  return options;
}

void Judge(const Policy& policy, const Comparison& comparison,
           absl::string_view baseline_text, int64_t now_unix_s,
           GateReport* report) {
  for (const Row& row : comparison.rows) {
    GateRow judged;
    judged.row = row;
    judged.baseline = std::string(baseline_text);
    judged.rule = policy.RuleFor(row.name, row.metric);
    judged.action = policy.ActionFor(row.verdict, judged.rule);
    const proto::Exemption* exemption =
        policy.ExemptionFor(row.name, row.metric, now_unix_s);
    if (exemption != nullptr && judged.action == proto::FAIL) {
      judged.action = proto::WARN;
      judged.exempted = absl::StrCat("exempted until ", exemption->until(),
                                     ": ", exemption->reason());
    }
    report->rows.push_back(std::move(judged));
  }
  for (const std::string& note : comparison.notes) {
    AddNote(absl::StrCat(baseline_text, ": ", note), report);
  }
}

void Conclude(GateReport* report) {
  std::stable_sort(report->rows.begin(), report->rows.end(),
                   [](const GateRow& a, const GateRow& b) {
                     const auto key = [](const GateRow& row) {
                       return std::make_tuple(Rank(row),
                                              VerdictRank(row.row.verdict),
                                              -row.row.worse_by);
                     };
                     return key(a) < key(b);
                   });
  const int red = report->CountRed();
  const int unclear = report->CountCannotTell();
  int faster = 0, judged = 0, warnings = 0;
  for (const GateRow& row : report->rows) {
    warnings += row.action == proto::WARN;
    faster += row.row.verdict == Verdict::kFaster;
    judged += row.row.verdict != Verdict::kNew &&
              row.row.verdict != Verdict::kSkipped &&
              row.row.verdict != Verdict::kCannotTell;
  }
  const std::string problems = BaselineProblems(*report);
  // A benchmark may have a row for each metric, hardware and baseline.
  std::set<std::string> names;
  for (const GateRow& row : report->rows) names.insert(row.row.name);
  const std::string of = absl::StrCat(
      " of ",
      Plural(static_cast<int>(report->rows.size()),
             names.size() == report->rows.size() ? "benchmark" : "comparison"));
  const auto conclude = [&](int exit_code, GateReason reason,
                            std::string summary) {
    report->exit_code = exit_code;
    report->reason = reason;
    report->summary = std::move(summary);
  };
  if (red > 0) {
    conclude(1, GateReason::kRegression,
             absl::StrCat("red: ", red, of, red == 1 ? " fails" : " fail"));
    if (unclear > 0) {
      absl::StrAppend(&report->summary, ", ", unclear, " can't be told");
    }
    for (const std::string& missing : report->missing) {
      absl::StrAppend(&report->summary, "; ", missing);
    }
  } else if (!report->missing.empty()) {
    conclude(
        3, GateReason::kMissing,
        absl::StrCat("can't tell: ", absl::StrJoin(report->missing, "; ")));
  } else if (!problems.empty()) {
    conclude(3, GateReason::kNoBaseline,
             absl::StrCat("can't tell: no baseline (", problems, ")"));
  } else if (report->rows.empty()) {
    conclude(3, GateReason::kNoBenchmark,
             "can't tell: there is no benchmark that a rule gates; next: a "
             "rule of the policy, or --metric, that matches what was measured");
  } else if (unclear > 0) {
    conclude(3, GateReason::kInconclusive,
             absl::StrCat("can't tell for ", unclear, of));
  } else if (judged == 0) {
    conclude(3, GateReason::kInconclusive,
             absl::StrCat("can't tell: none", of, " was judged"));
  } else {
    conclude(0, GateReason::kGreen,
             warnings == 0 ? absl::StrCat("green: nothing", of, " got worse")
                           : absl::StrCat("green: nothing", of, " fails; ",
                                          Plural(warnings, "warning")));
  }
  if (report->reason == GateReason::kInconclusive) NoteSharedMachine(report);
  if (faster > 0) absl::StrAppend(&report->summary, "; ", faster, " faster");
  std::set<std::string> said;
  for (const GateReport::ResolvedBaseline& baseline : report->baselines) {
    if (baseline.measured_differently.empty() || !baseline.problem.empty() ||
        !said.insert(baseline.text).second) {
      continue;
    }
    absl::StrAppend(&report->summary, "; measured differently than ",
                    baseline.text);
  }
}

absl::optional<Remeasure> RemeasureRequest(const GateReport& report) {
  std::set<std::string> names;
  Remeasure request;
  for (const GateRow& row : report.rows) {
    if (!IsUnclear(row) || !row.row.processes_needed.has_value()) continue;
    names.insert(row.row.name);
    const int needed = *row.row.processes_needed;
    int have =
        std::min(row.row.baseline.processes, row.row.candidate.processes);
    // Of pairs, rounds are what counts.
    if (row.row.ratio.has_value()) {
      have = std::min(row.row.ratio->baseline_processes,
                      row.row.ratio->candidate_processes);
    }
    request.processes = std::max(request.processes, needed);
    // Spread that grew while measuring may ask for fewer than there are.
    request.additional_processes =
        std::max({request.additional_processes, needed - have, 1});
  }
  if (names.empty()) return absl::nullopt;
  request.filter = BenchmarkFilter(names);
  return request;
}

std::string BenchmarkFilter(const std::set<std::string>& names) {
  return absl::StrCat("^(",
                      absl::StrJoin(names, "|",
                                    [](std::string* out, const auto& name) {
                                      *out += PatternOf(name);
                                    }),
                      ")$");
}

}  // namespace optrail::tracker
