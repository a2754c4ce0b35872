#include "tracker/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/statistics.h"
#include "base/status_macros.h"
#include "tracker/history/history.h"
#include "tracker/series/series.h"
#include "tracker/series/similar.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/measurement_settings_text.h"

namespace optrail::tracker {
namespace {

using RunPointers = std::vector<const proto::Run*>;

// What one side says of one benchmark and metric.
struct Evidence {
  proto::BenchmarkKey key;
  MetricInfo metric;
  Side side;
  ProcessGroups groups;  // one per run
};

// By PriorKey(), so that the order of rows does not depend on that of runs.
using Evidences = std::map<std::string, Evidence>;

std::string Percent(double fraction) {
  const double percent = 100 * fraction;
  return std::abs(percent) < 99.5 ? absl::StrFormat("%.2g%%", percent)
                                  : absl::StrFormat("%.0f%%", percent);
}

std::string PText(double p) {
  return p < .001 ? "p < 0.001" : absl::StrFormat("p = %.3f", p);
}

// "takes 12% more time", "takes 4.50x the time (+350%)", "joules: 12% higher".
std::string ChangeText(const Row& row) {
  const double ratio = row.ratio->ratio;
  const double change = ratio - 1;
  if (row.metric != "time") {
    return absl::StrCat(row.metric, ": ", Percent(std::abs(change)),
                        change > 0 ? " higher" : " lower");
  }
  if (ratio >= 2 || ratio <= .5) {
    return absl::StrCat("takes ", absl::StrFormat("%.2fx", ratio),
                        " the time (", change > 0 ? "+" : "", Percent(change),
                        ")");
  }
  return absl::StrCat("takes ", Percent(std::abs(change)),
                      change > 0 ? " more time" : " less time");
}

bool Works(proto::Outcome outcome) {
  return outcome == proto::OK || outcome == proto::OUTCOME_UNSPECIFIED;
}

// Contended and raced-out measurements say nothing; they are no failure.
bool Failed(proto::Outcome outcome) {
  return !Works(outcome) && outcome != proto::CONTENDED &&
         outcome != proto::CENSORED;
}

void AddReadings(const proto::Run& run, const proto::BenchmarkResult& result,
                 Evidence& evidence) {
  Side& side = evidence.side;
  const bool first_of_run =
      side.run_ids.empty() || side.run_ids.back() != run.run_id();
  if (first_of_run) {
    side.run_ids.push_back(run.run_id());
    evidence.groups.emplace_back();
  }
  side.commit = run.commit();
  side.config = result.config();
  side.kernel_id = result.kernel_id();
  if (run.has_settings()) side.settings = run.settings();
  if (Works(side.outcome)) {
    side.outcome = result.outcome();
    side.detail = result.detail();
  }
  for (const proto::Measurement& measurement : result.measurements()) {
    const auto reading = ReadingOf(measurement, evidence.metric.metric);
    if (!reading.has_value()) continue;
    if (reading->aggregate_only) {
      side.aggregate_only = true;
      if (!side.value.has_value()) side.value = reading->value;
    } else {
      evidence.groups.back().push_back(reading->value);
    }
  }
}

Evidences Collect(const RunPointers& runs, const CompareOptions& options) {
  Evidences evidences;
  for (const proto::Run* run : runs) {
    for (const proto::BenchmarkResult& result : run->results()) {
      const std::string name = DisplayName(result.key());
      for (const MetricInfo& metric : MetricsOf(result)) {
        const bool wanted =
            options.threshold
                ? options.threshold(name, metric.metric).has_value()
                : metric.metric == "time";
        if (!wanted) continue;
        Evidence& evidence = evidences[PriorKey(result.key(), metric.metric)];
        evidence.key = result.key();
        evidence.metric = metric;
        AddReadings(*run, result, evidence);
      }
    }
  }
  for (auto& [text, evidence] : evidences) {
    std::vector<double> all;
    for (const std::vector<double>& group : evidence.groups) {
      all.insert(all.end(), group.begin(), group.end());
    }
    evidence.side.processes = static_cast<int>(all.size());
    // Raw readings beat aggregates where a side has both.
    if (!all.empty()) {
      evidence.side.aggregate_only = false;
      evidence.side.value = Median(all);
    }
  }
  return evidences;
}

std::string FailureText(const Side& side) {
  return absl::StrCat(tuning::OutcomeName(side.outcome),
                      side.detail.empty() ? "" : ": ", side.detail);
}

class Comparer {
 public:
  explicit Comparer(const CompareOptions& options) : options_(options) {}

  std::vector<Row> Rows(const Evidences& baseline, const Evidences& candidate) {
    std::set<std::string> candidate_versions;
    for (const auto& [text, evidence] : candidate) {
      candidate_versions.insert(Versionless(evidence));
    }
    std::map<std::string, const Evidence*> baseline_versions;
    for (const auto& [text, evidence] : baseline) {
      baseline_versions[Versionless(evidence)] = &evidence;
    }
    for (const auto& [text, evidence] : candidate) {
      Row& row = AddRow(evidence);
      row.candidate = evidence.side;
      const auto found = baseline.find(text);
      if (found != baseline.end()) {
        row.baseline = found->second.side;
        row.measured_differently = tuning::DescribeSettingsChange(
            row.baseline.settings, row.candidate.settings);
        Judge(found->second, evidence, text, row);
        continue;
      }
      const auto other = baseline_versions.find(Versionless(evidence));
      if (other != baseline_versions.end()) {
        row.baseline = other->second->side;
        Decide(row, Verdict::kNewVersion,
               absl::StrCat("version ", other->second->key.version(), " -> ",
                            evidence.key.version(), ": not compared"));
      } else if (Failed(row.candidate.outcome)) {
        DecideFailed(row, "new, and ");
      } else {
        Decide(row, Verdict::kNew, "not in the baseline");
      }
    }
    for (const auto& [text, evidence] : baseline) {
      if (candidate.count(text) > 0 ||
          candidate_versions.count(Versionless(evidence)) > 0 ||
          FailedInCandidate(evidence, candidate)) {
        continue;
      }
      Row& row = AddRow(evidence);
      row.baseline = evidence.side;
      Decide(row, Verdict::kMissing, "not in the candidate");
    }
    FindRenamed();
    DecideCompared();
    std::sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
      return std::tie(a.name, a.metric) < std::tie(b.name, b.metric);
    });
    return std::move(rows_);
  }

 private:
  static std::string Versionless(const Evidence& evidence) {
    return absl::StrCat(TextWithoutVersion(evidence.key), "|",
                        evidence.metric.metric);
  }

  // A benchmark that failed measures nothing; its time row says so, and rows
  // for each other metric would say it again.
  static bool FailedInCandidate(const Evidence& evidence,
                                const Evidences& candidate) {
    const auto time = candidate.find(PriorKey(evidence.key, "time"));
    return time != candidate.end() && !Works(time->second.side.outcome);
  }

  static void Decide(Row& row, Verdict verdict, std::string reason) {
    row.verdict = verdict;
    row.reason = std::move(reason);
  }

  static void DecideFailed(Row& row, absl::string_view prefix) {
    Decide(row,
           row.candidate.outcome == proto::WRONG_RESULT ? Verdict::kWrongResult
                                                        : Verdict::kCrashed,
           absl::StrCat(prefix, FailureText(row.candidate)));
  }

  Row& AddRow(const Evidence& evidence) {
    rows_.emplace_back();
    Row& row = rows_.back();
    row.key = evidence.key;
    row.name = DisplayName(evidence.key);
    row.metric = evidence.metric.metric;
    row.unit = evidence.metric.unit;
    row.direction = evidence.metric.direction;
    if (options_.threshold) {
      row.threshold =
          options_.threshold(row.name, row.metric).value_or(Threshold());
    }
    if (row.threshold.direction != proto::DIRECTION_UNSPECIFIED) {
      row.direction = row.threshold.direction;
    }
    return row;
  }

  // Everything that needs no other row; what can be compared gets its ratio.
  void Judge(const Evidence& baseline, const Evidence& candidate,
             const std::string& text, Row& row) {
    if (Failed(row.candidate.outcome)) {
      if (Failed(row.baseline.outcome)) {
        Decide(row, Verdict::kCannotTell,
               absl::StrCat("failed in the baseline too: ",
                            FailureText(row.candidate)));
      } else {
        DecideFailed(row, "");
      }
      return;
    }
    for (const auto& [side, name] :
         {std::make_pair(&row.baseline, "the baseline"),
          std::make_pair(&row.candidate, "the candidate")}) {
      if (side->processes >= options_.min_processes) continue;
      row.processes_needed = options_.min_processes;
      if (side->aggregate_only) {
        Decide(row, Verdict::kCannotTell,
               absl::StrCat(name,
                            " holds only an aggregate: record each "
                            "process"));
      } else if (!Works(side->outcome)) {
        Decide(row, Verdict::kCannotTell,
               absl::StrCat(name, ": ", FailureText(*side)));
      } else {
        Decide(
            row, Verdict::kCannotTell,
            absl::StrCat(name, " has ", side->processes,
                         side->processes == 1 ? " process" : " processes",
                         ", at least ", options_.min_processes, " are needed"));
      }
      return;
    }
    RatioOptions ratio_options;
    ratio_options.confidence = options_.confidence;
    const auto prior = options_.priors.find(text);
    if (prior != options_.priors.end()) ratio_options.prior = prior->second;
    const absl::StatusOr<Ratio> ratio =
        CompareProcesses(baseline.groups, candidate.groups, ratio_options);
    if (!ratio.ok()) {
      Decide(row, Verdict::kCannotTell, std::string(ratio.status().message()));
      return;
    }
    row.ratio = *ratio;
    const double change = WorseLog(row);
    row.worse_by = std::expm1(change);
  }

  static double WorseLog(const Row& row) {
    return row.direction == proto::HIGHER_IS_BETTER ? -row.ratio->log_ratio
                                                    : row.ratio->log_ratio;
  }

  void FindRenamed() {
    std::vector<std::string> vanished, added;
    std::vector<size_t> vanished_rows, added_rows;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].metric != "time") continue;
      if (rows_[i].verdict == Verdict::kMissing) {
        vanished.push_back(rows_[i].name);
        vanished_rows.push_back(i);
      } else if (rows_[i].verdict == Verdict::kNew) {
        added.push_back(rows_[i].name);
        added_rows.push_back(i);
      }
    }
    std::map<std::string, std::string> new_name_of, old_name_of;
    for (const auto& [from, to] : MatchRenamed(vanished, added)) {
      const Row& row = rows_[added_rows[to]];
      const absl::optional<double> before =
          rows_[vanished_rows[from]].baseline.value;
      const absl::optional<double> after = row.candidate.value;
      // A benchmark that takes another time altogether is another one.
      if (before && after && (*after > 2 * *before || *before > 2 * *after)) {
        continue;
      }
      new_name_of[vanished[from]] = added[to];
      old_name_of[added[to]] = vanished[from];
    }
    std::vector<Row> kept;
    std::map<std::string, Side> old_sides;
    for (Row& row : rows_) {
      if (row.verdict == Verdict::kMissing && new_name_of.count(row.name) > 0) {
        old_sides[new_name_of[row.name] + "|" + row.metric] = row.baseline;
      }
    }
    for (Row& row : rows_) {
      if (row.verdict == Verdict::kMissing && new_name_of.count(row.name) > 0) {
        continue;
      }
      if (row.verdict == Verdict::kNew && old_name_of.count(row.name) > 0) {
        row.renamed_from = old_name_of[row.name];
        row.baseline = old_sides[row.name + "|" + row.metric];
        Decide(row, Verdict::kRenamed,
               absl::StrCat("looks like ", row.renamed_from,
                            ", which is gone: not compared"));
      }
      kept.push_back(std::move(row));
    }
    rows_ = std::move(kept);
  }

  // Benjamini-Hochberg, for each direction by itself, over what was compared.
  void DecideCompared() {
    std::vector<Row*> compared;
    std::vector<double> p_worse, p_better;
    for (Row& row : rows_) {
      if (!row.ratio.has_value()) continue;
      compared.push_back(&row);
      const bool lower = row.direction != proto::HIGHER_IS_BETTER;
      p_worse.push_back(lower ? row.ratio->p_greater : row.ratio->p_less);
      p_better.push_back(lower ? row.ratio->p_less : row.ratio->p_greater);
    }
    const std::vector<double> worse = BenjaminiHochberg(p_worse);
    const std::vector<double> better = BenjaminiHochberg(p_better);
    for (size_t i = 0; i < compared.size(); ++i) {
      compared[i]->adjusted_p = worse[i];
      DecideRow(worse[i], better[i],
                options_.false_alarm_rate / static_cast<double>(worse.size()),
                *compared[i]);
    }
  }

  // `alpha` is the level at which this row is found if it is the only one.
  void DecideRow(double p_worse, double p_better, double alpha, Row& row) {
    const Ratio& ratio = *row.ratio;
    const Threshold& threshold = row.threshold;
    const double detectable =
        MinimumDetectableEffect(ratio.standard_error, ratio.degrees_of_freedom,
                                alpha, options_.power, threshold.min_effect);
    row.minimum_detectable_effect = detectable;
    const double change = WorseLog(row);
    const double counts = std::log1p(threshold.min_effect);
    const double q = options_.false_alarm_rate;
    if (p_worse <= q && change >= counts) {
      Decide(row, Verdict::kSlower,
             absl::StrCat(ChangeText(row), ", ", PText(p_worse)));
    } else if (p_better <= q && -change >= counts) {
      Decide(row, Verdict::kFaster,
             absl::StrCat(ChangeText(row), ", ", PText(p_better)));
    } else if (detectable <= threshold.detect_effect) {
      Decide(row, Verdict::kUnchanged,
             absl::StrCat("a change of ", Percent(detectable),
                          " would have been found"));
    } else {
      row.processes_needed = ProcessesNeeded(
          SpreadThatCounts(ratio), threshold.detect_effect,
          threshold.min_effect, alpha, options_.power, kMostProcesses);
      Decide(row, Verdict::kCannotTell, NoiseReason(row, detectable));
    }
  }

  // What a process contributes to the error of the ratio, its share in how runs
  // differ included: more processes are taken to come in as many more runs.
  static double SpreadThatCounts(const Ratio& ratio) {
    return std::max(
        ratio.process_spread,
        ratio.standard_error / std::sqrt(1. / ratio.baseline_processes +
                                         1. / ratio.candidate_processes));
  }

  static std::string NoiseReason(const Row& row, double detectable) {
    const Ratio& ratio = *row.ratio;
    std::string reason = absl::StrCat(
        "only a change of ", Percent(detectable),
        " would be found (must: ", Percent(row.threshold.detect_effect),
        "); processes vary by ", Percent(ratio.process_spread));
    const bool runs_differ = ratio.run_spread > ratio.process_spread;
    if (runs_differ) {
      absl::StrAppend(&reason, ", runs by ", Percent(ratio.run_spread));
    }
    if (!row.processes_needed.has_value()) {
      return absl::StrCat(reason, ": no reasonable number of processes tells");
    }
    return absl::StrCat(
        reason, ": ", *row.processes_needed, " processes a side",
        runs_differ ? ", both sides in turn," : "", " would tell");
  }

  static constexpr int kMostProcesses = 200;

  const CompareOptions& options_;
  std::vector<Row> rows_;
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

// Against the last run of the candidate: each difference once, with how many
// runs of the side have it unless all do.
void NoteSettings(absl::string_view side, const RunPointers& runs,
                  const proto::Run& last, std::vector<std::string>* notes) {
  std::map<std::string, size_t> differences;
  for (const proto::Run* run : runs) {
    const std::string change =
        MeasuredDifferently(run->settings(), last.settings());
    if (!change.empty()) ++differences[change];
  }
  for (const auto& [change, count] : differences) {
    notes->push_back(count == runs.size()
                         ? change
                         : absl::StrCat(change, " (", count, " of ",
                                        runs.size(), " runs of the ", side,
                                        ")"));
  }
}

// The first pair of runs that claim to be of the same code but were measured by
// different programs: other flags, other inputs of the build, or a work tree
// that git took for clean.
void NoteBuilds(const RunPointers& baseline, const RunPointers& candidate,
                std::vector<std::string>* notes) {
  for (const proto::Run* a : baseline) {
    for (const proto::Run* b : candidate) {
      if (a->commit().id().empty() || a->commit().id() != b->commit().id() ||
          a->commit().dirty() || b->commit().dirty() ||
          !tuning::IsAnotherBuild(a->settings(), b->settings())) {
        continue;
      }
      notes->push_back(absl::StrCat(
          "same commit, another build: binary ",
          a->settings().binary_fingerprint(), " (run ", a->run_id(), ") -> ",
          b->settings().binary_fingerprint(), " (run ", b->run_id(), ")"));
      return;
    }
  }
}

std::vector<std::string> Notes(const RunPointers& baseline,
                               const RunPointers& candidate) {
  std::vector<std::string> notes;
  const std::string change = DescribeToolchainChange(
      baseline.back()->toolchain(), candidate.back()->toolchain());
  if (!change.empty()) {
    notes.push_back(absl::StrCat("toolchain changed: ", change));
  }
  NoteSettings("baseline", baseline, *candidate.back(), &notes);
  NoteSettings("candidate", candidate, *candidate.back(), &notes);
  NoteBuilds(baseline, candidate, &notes);
  for (const proto::Run* run : baseline) {
    if (!run->commit().dirty()) continue;
    notes.push_back(absl::StrCat("baseline run ", run->run_id(),
                                 " has changes that its commit lacks"));
  }
  for (const proto::Run* run : candidate) {
    for (const proto::Run* other : baseline) {
      if (run->run_id() == other->run_id()) {
        notes.push_back(
            absl::StrCat("run ", run->run_id(), " is on both sides"));
      }
    }
  }
  return notes;
}

}  // namespace

absl::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kUnchanged:
      return "unchanged";
    case Verdict::kSlower:
      return "slower";
    case Verdict::kFaster:
      return "faster";
    case Verdict::kCannotTell:
      return "can't tell";
    case Verdict::kMissing:
      return "missing";
    case Verdict::kNew:
      return "new";
    case Verdict::kRenamed:
      return "renamed";
    case Verdict::kNewVersion:
      return "new version";
    case Verdict::kCrashed:
      return "crashed";
    case Verdict::kWrongResult:
      return "wrong result";
  }
  return "unknown";
}

std::string PriorKey(const proto::BenchmarkKey& key, absl::string_view metric) {
  return absl::StrCat(CanonicalText(key), "|", metric);
}

std::map<std::string, SpreadPrior> SpreadPriors(const RunPointers& runs) {
  std::map<std::string, ProcessGroups> groups;
  for (const proto::Run* run : runs) {
    for (const proto::BenchmarkResult& result : run->results()) {
      for (const MetricInfo& metric : MetricsOf(result)) {
        std::vector<double> group;
        for (const proto::Measurement& measurement : result.measurements()) {
          const auto reading = ReadingOf(measurement, metric.metric);
          if (reading.has_value() && !reading->aggregate_only &&
              reading->value > 0) {
            group.push_back(reading->value);
          }
        }
        if (group.size() < 2) continue;
        groups[PriorKey(result.key(), metric.metric)].push_back(
            std::move(group));
      }
    }
  }
  std::map<std::string, SpreadPrior> priors;
  for (const auto& [text, values] : groups) {
    priors[text] = EstimateSpread(values);
  }
  return priors;
}

int Comparison::Count(Verdict verdict) const {
  return static_cast<int>(
      std::count_if(rows.begin(), rows.end(),
                    [&](const Row& row) { return row.verdict == verdict; }));
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
  SortInSeriesOrder(sorted_baseline);
  SortInSeriesOrder(sorted_candidate);
  Comparison comparison;
  comparison.rows = Comparer(options).Rows(Collect(sorted_baseline, options),
                                           Collect(sorted_candidate, options));
  comparison.notes = Notes(sorted_baseline, sorted_candidate);
  return comparison;
}

}  // namespace optrail::tracker
