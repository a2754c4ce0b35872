#include "tracker/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tracker/compare/comparison_notes.h"
#include "tracker/compare/decision.h"
#include "tracker/compare/pairs.h"
#include "tracker/compare/side_evidence.h"
#include "tracker/history/history.h"
#include "tracker/series/series.h"
#include "tracker/series/similar.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/measurement_settings_text.h"

namespace optrail::tracker {
namespace {

using RunPointers = std::vector<const proto::Run*>;

// The benchmark says that it can't run here: it counts as one that the side
// lacks.
bool IsSkipped(const Side& side) {
  return side.outcome == proto::UNSUPPORTED && !side.value.has_value();
}

std::string SkippedText(const Side& side) {
  return absl::StrCat("skipped", side.detail.empty() ? "" : ": ", side.detail);
}

std::string FailureText(const Side& side) {
  return absl::StrCat(tuning::OutcomeName(side.outcome),
                      side.detail.empty() ? "" : ": ", side.detail);
}

// What needs no statistics: rows, failures, names.
class Sorter {
 public:
  explicit Sorter(const CompareOptions& options) : options_(options) {}

  // Rows that have readings on both sides.
  const ComparedRows& compared() const { return compared_; }

  std::vector<Row> Rows(const SideEvidences& baseline,
                        const SideEvidences& candidate) {
    std::set<std::string> candidate_versions, unmeasured;
    for (const auto& [text, evidence] : candidate) {
      candidate_versions.insert(Versionless(evidence));
      if (!Works(evidence.side.outcome)) {
        unmeasured.insert(CanonicalText(evidence.key));
      }
    }
    std::map<std::string, const SideEvidence*> baseline_versions;
    for (const auto& [text, evidence] : baseline) {
      if (IsSkipped(evidence.side)) continue;
      baseline_versions[Versionless(evidence)] = &evidence;
    }
    for (const auto& [text, evidence] : candidate) {
      Row& row = AddRow(evidence);
      row.candidate = evidence.side;
      const auto found = baseline.find(text);
      if (IsSkipped(row.candidate)) {
        const bool was_measured =
            found != baseline.end() && found->second.side.value.has_value();
        if (was_measured) row.baseline = found->second.side;
        Decide(row, was_measured ? Verdict::kMissing : Verdict::kSkipped,
               SkippedText(row.candidate));
        continue;
      }
      if (found != baseline.end() && !IsSkipped(found->second.side)) {
        row.baseline = found->second.side;
        Judge(found->second, evidence, row);
        row.measured_differently = tuning::DescribeSettingsChange(
            row.baseline.settings, row.candidate.settings);
        continue;
      }
      const auto other = baseline_versions.find(Versionless(evidence));
      if (tuning::IsFailure(row.candidate.outcome)) {
        DecideFailed(evidence, row, "new, and ");
      } else if (other != baseline_versions.end()) {
        row.baseline = other->second->side;
        Decide(row, Verdict::kNewVersion,
               absl::StrCat("version ", other->second->key.version(), " -> ",
                            evidence.key.version(), ": not compared"));
      } else if (found != baseline.end()) {
        row.baseline = found->second.side;
        Decide(row, Verdict::kNew,
               absl::StrCat("in the baseline ", SkippedText(row.baseline)));
      } else {
        Decide(row, Verdict::kNew, "not in the baseline");
      }
    }
    for (const auto& [text, evidence] : baseline) {
      if (candidate.count(text) > 0 ||
          candidate_versions.count(Versionless(evidence)) > 0 ||
          IsSkipped(evidence.side) ||
          // One row says that it failed; one a metric would say it again.
          unmeasured.count(CanonicalText(evidence.key)) > 0) {
        continue;
      }
      Row& row = AddRow(evidence);
      row.baseline = evidence.side;
      Decide(row, Verdict::kMissing, "not in the candidate");
    }
    FindRenamed();
    std::sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
      return std::tie(a.name, a.metric) < std::tie(b.name, b.metric);
    });
    return std::move(rows_);
  }

 private:
  static std::string Versionless(const SideEvidence& evidence) {
    return absl::StrCat(TextWithoutVersion(evidence.key), "|",
                        evidence.metric.metric);
  }

  static void Decide(Row& row, Verdict verdict, std::string reason) {
    row.verdict = verdict;
    row.reason = std::move(reason);
  }

  // The runs of the side are then those that failed.
  static void DecideFailed(const SideEvidence& candidate, Row& row,
                           absl::string_view prefix) {
    if (row.candidate.run_ids != candidate.worst.run_ids) {
      Side failed = candidate.worst;
      failed.outcome = row.candidate.outcome;
      failed.detail = std::move(row.candidate.detail);
      failed.outcomes = std::move(row.candidate.outcomes);
      row.candidate = std::move(failed);
    }
    Decide(row,
           row.candidate.outcome == proto::WRONG_RESULT ? Verdict::kWrongResult
                                                        : Verdict::kCrashed,
           absl::StrCat(prefix, FailureText(row.candidate)));
  }

  Row& AddRow(const SideEvidence& evidence) {
    rows_.emplace_back();
    Row& row = rows_.back();
    row.key = evidence.key;
    row.name = DisplayName(evidence.key);
    row.metric = evidence.metric.metric;
    row.unit = evidence.metric.unit;
    row.direction = evidence.metric.direction;
    row.threshold = *ThresholdOf(options_, row.name, row.metric);
    if (row.threshold.direction != proto::DIRECTION_UNSPECIFIED) {
      row.direction = row.threshold.direction;
    }
    return row;
  }

  // Everything that needs no other row.
  void Judge(const SideEvidence& baseline, const SideEvidence& candidate,
             Row& row) {
    if (tuning::IsFailure(row.candidate.outcome)) {
      if (FailedBefore(row)) {
        Decide(row, Verdict::kCannotTell,
               absl::StrCat("failed in the baseline too: ",
                            FailureText(row.candidate)));
      } else {
        DecideFailed(candidate, row, "");
      }
      return;
    }
    if (row.metric != kTimeMetric && JudgeZeros(baseline, candidate, row))
      return;
    for (const auto& [evidence, name] :
         {std::make_pair(&baseline, "the baseline"),
          std::make_pair(&candidate, "the candidate")}) {
      const Side& side = evidence->side;
      if (evidence->no_ratio.has_value()) {
        Decide(row, Verdict::kCannotTell,
               absl::StrCat(name, " has the value ", *evidence->no_ratio,
                            ", a ratio needs positive, finite ones"));
        return;
      }
      if (side.processes >= options_.min_processes) continue;
      row.processes_needed = options_.min_processes;
      if (side.aggregate_only) {
        Decide(row, Verdict::kCannotTell,
               absl::StrCat(name,
                            " holds only an aggregate: record each "
                            "process"));
      } else if (!Works(side.outcome)) {
        Decide(row, Verdict::kCannotTell,
               absl::StrCat(name, ": ", FailureText(side)));
      } else {
        Decide(
            row, Verdict::kCannotTell,
            absl::StrCat(name, " has ", side.processes,
                         side.processes == 1 ? " process" : " processes",
                         ", at least ", options_.min_processes, " are needed"));
      }
      return;
    }
    compared_[PriorKey(candidate.key, candidate.metric.metric)] =
        PriorKey(baseline.key, baseline.metric.metric);
  }

  // A side of zeros, such as a count of allocations, allows no ratio. Returns
  // false where nothing can be told.
  bool JudgeZeros(const SideEvidence& baseline, const SideEvidence& candidate,
                  Row& row) const {
    const bool was_zero = IsZero(baseline), is_zero = IsZero(candidate);
    if (was_zero && is_zero) {
      Decide(row, Verdict::kUnchanged, "0 in every process of both sides");
      return true;
    }
    if (was_zero == is_zero) return false;
    const Side& other = was_zero ? row.candidate : row.baseline;
    const auto [least, most] =
        absl::c_minmax_element((was_zero ? candidate : baseline).readings);
    if (other.processes < options_.min_processes || !HasLogarithm(*least) ||
        !HasLogarithm(*most)) {
      return false;
    }
    // Readings that vary must be so many that chance does not part them from
    // the zeros: one order of all of them does.
    const double by_chance =
        std::tgamma(row.baseline.processes + 1.) *
        std::tgamma(row.candidate.processes + 1.) /
        std::tgamma(row.baseline.processes + row.candidate.processes + 1.);
    if (*least < *most && !(by_chance <= options_.false_alarm_rate)) {
      return false;
    }
    const std::string values = *least < *most
                                   ? absl::StrCat(*least, " to ", *most)
                                   : absl::StrCat(*least);
    const bool worse = was_zero == (row.direction != proto::HIGHER_IS_BETTER);
    const double change =
        was_zero ? std::numeric_limits<double>::infinity() : -1;
    row.worse_by = row.direction != proto::HIGHER_IS_BETTER ? change : -change;
    Decide(row, worse ? Verdict::kSlower : Verdict::kFaster,
           absl::StrCat(row.metric, ": ", was_zero ? "0" : values,
                        " in every process of the baseline, ",
                        is_zero ? "0" : values, " in the candidate's"));
    return true;
  }

  // Whether a count, such as that of allocations, is nothing but zeros.
  bool IsZero(const SideEvidence& evidence) const {
    return evidence.side.processes >= options_.min_processes &&
           std::all_of(evidence.readings.begin(), evidence.readings.end(),
                       [](double reading) { return reading == 0; });
  }

  // The same failure in most runs of the baseline is no news; another one, or
  // one run of ten, is no excuse.
  static bool FailedBefore(const Row& row) {
    int runs = 0;
    for (const auto& [outcome, count] : row.baseline.outcomes) runs += count;
    const auto same = row.baseline.outcomes.find(row.candidate.outcome);
    return same != row.baseline.outcomes.end() && 2 * same->second > runs;
  }

  // The rows of the time with that verdict, but for benchmarks that one side
  // skipped: those have kept their names.
  std::vector<const Row*> TimesThatAre(Verdict verdict) const {
    std::vector<const Row*> rows;
    for (const Row& row : rows_) {
      if (row.metric == kTimeMetric && row.verdict == verdict &&
          !IsSkipped(row.baseline) && !IsSkipped(row.candidate)) {
        rows.push_back(&row);
      }
    }
    return rows;
  }

  void FindRenamed() {
    const std::vector<const Row*> vanished = TimesThatAre(Verdict::kMissing);
    const std::vector<const Row*> added = TimesThatAre(Verdict::kNew);
    const auto names = [](const std::vector<const Row*>& rows) {
      std::vector<std::string> names;
      for (const Row* row : rows) names.push_back(row->name);
      return names;
    };
    std::map<std::string, std::string> new_name_of, old_name_of;
    for (const auto& [from, to] : MatchRenamed(names(vanished), names(added))) {
      const absl::optional<double> before = vanished[from]->baseline.value;
      const absl::optional<double> after = added[to]->candidate.value;
      // A benchmark that takes another time altogether is another one.
      if (before && after && (*after > 2 * *before || *before > 2 * *after)) {
        continue;
      }
      new_name_of[vanished[from]->name] = added[to]->name;
      old_name_of[added[to]->name] = vanished[from]->name;
    }
    const auto has_new_name = [&](const Row& row) {
      return row.verdict == Verdict::kMissing &&
             new_name_of.count(row.name) > 0;
    };
    std::vector<Row> kept;
    std::map<std::string, Row> old_rows;  // by new name and metric
    for (Row& row : rows_) {
      if (has_new_name(row)) {
        old_rows[new_name_of[row.name] + "|" + row.metric] = row;
      } else {
        kept.push_back(std::move(row));
      }
    }
    rows_ = std::move(kept);
    for (Row& row : rows_) {
      if (row.verdict != Verdict::kNew || old_name_of.count(row.name) == 0) {
        continue;
      }
      row.renamed_from = old_name_of[row.name];
      const Row& old = old_rows[row.name + "|" + row.metric];
      row.baseline = old.baseline;
      Decide(row, Verdict::kRenamed,
             absl::StrCat("looks like ", row.renamed_from, ", which is gone"));
      // Under another name it may have become slower all the same.
      if (row.baseline.processes >= options_.min_processes &&
          row.candidate.processes >= options_.min_processes) {
        compared_[PriorKey(row.key, row.metric)] =
            PriorKey(old.key, row.metric);
      }
    }
  }

  const CompareOptions& options_;
  std::vector<Row> rows_;
  ComparedRows compared_;
};

absl::Status CheckSameHardware(const RunPointers& baseline,
                               const RunPointers& candidate) {
  const std::string& expected = candidate.front()->hardware().id();
  for (const RunPointers* side : {&baseline, &candidate}) {
    for (const proto::Run* run : *side) {
      if (run->hardware().id() == expected) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "run ", run->run_id(), " is from hardware '", run->hardware().id(),
          "', run ", candidate.front()->run_id(), " from '", expected,
          "': results of different hardware are not compared"));
    }
  }
  return absl::OkStatus();
}

// The evidence of a verdict is the runs that it was made from: a run that was
// left out of the level is neither counted nor named.
void KeepUsedRuns(const RunPointers& baseline, const CompareOptions& options,
                  std::vector<Row>* rows) {
  std::map<std::set<std::string>, SideEvidences> known;
  for (Row& row : *rows) {
    if (!row.ratio.has_value() || row.used_runs.empty() ||
        row.used_runs.size() >= row.baseline.run_ids.size()) {
      continue;
    }
    auto [evidences, is_new] = known.try_emplace(row.used_runs);
    if (is_new) {
      RunPointers used;
      for (const proto::Run* run : baseline) {
        if (row.used_runs.count(run->run_id()) > 0) used.push_back(run);
      }
      evidences->second = CollectEvidence(used, options);
    }
    const auto found = evidences->second.find(PriorKey(row.key, row.metric));
    if (found == evidences->second.end()) continue;  // renamed
    const size_t all = row.baseline.run_ids.size();
    row.baseline = found->second.side;
    row.unused_runs = static_cast<int>(all - row.baseline.run_ids.size());
    row.ratio->baseline_processes = row.baseline.processes;
  }
}

}  // namespace

std::string PriorKey(const proto::BenchmarkKey& key, absl::string_view metric) {
  return absl::StrCat(CanonicalText(key), "|", metric);
}

int Comparison::Count(Verdict verdict) const {
  return static_cast<int>(
      std::count_if(rows.begin(), rows.end(),
                    [&](const Row& row) { return row.verdict == verdict; }));
}

int Comparison::CountTold() const {
  int told = 0;
  for (const Verdict verdict :
       {Verdict::kUnchanged, Verdict::kSlower, Verdict::kSlowerInMostSamples,
        Verdict::kFaster}) {
    told += Count(verdict);
  }
  return told;
}

absl::StatusOr<Comparison> Compare(const RunPointers& baseline,
                                   const RunPointers& candidate,
                                   const CompareOptions& options) {
  if (baseline.empty() || candidate.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the ", baseline.empty() ? "baseline" : "candidate", " has no runs"));
  }
  OPTRAIL_RETURN_IF_ERROR(CheckSameHardware(baseline, candidate));
  RunPointers sorted_baseline = baseline, sorted_candidate = candidate;
  const std::string left_out = KeepPairs(&sorted_baseline, &sorted_candidate);
  SortInSeriesOrder(sorted_baseline);
  SortInSeriesOrder(sorted_candidate);
  Comparison comparison;
  Sorter sorter(options);
  SideEvidences before = CollectEvidence(sorted_baseline, options);
  SideEvidences after = CollectEvidence(sorted_candidate, options);
  KeepJudged(options, &before, &after);
  comparison.rows = sorter.Rows(before, after);
  DecideRows(sorted_baseline, sorted_candidate, options, sorter.compared(),
             &comparison);
  KeepUsedRuns(sorted_baseline, options, &comparison.rows);
  for (Row& row : comparison.rows) NoteMedians(&row);
  comparison.notes = ComparisonNotes(sorted_baseline, sorted_candidate);
  if (!left_out.empty()) comparison.notes.push_back(left_out);
  return comparison;
}

}  // namespace optrail::tracker
