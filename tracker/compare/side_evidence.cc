#include "tracker/compare/side_evidence.h"

#include <iterator>
#include <set>
#include <utility>

#include "base/stats/statistics.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

// Adds the run, which is the last one so far; it may have two results of a key.
void SetRun(const proto::Run& run, const proto::BenchmarkResult& result,
            Side& side) {
  if (side.run_ids.empty() || side.run_ids.back() != run.run_id()) {
    side.run_ids.push_back(run.run_id());
  }
  side.commit = run.commit();
  side.config = result.config();
  side.kernel_id = result.kernel_id();
  if (run.has_settings()) side.settings = run.settings();
}

// Takes the readings of a run. One that measured nothing tells how it failed,
// and is no run of the value.
void AddReadings(const proto::Run& run, const proto::BenchmarkResult& result,
                 SideEvidence& evidence) {
  Side& side = evidence.side;
  ++side.outcomes[result.outcome()];
  if (tuning::Severity(result.outcome()) >= tuning::Severity(side.outcome)) {
    if (result.outcome() != side.outcome) evidence.worst = Side();
    SetRun(run, result, evidence.worst);
    side.outcome = result.outcome();
    side.detail = result.detail();
  }
  bool is_measured = false;
  for (const proto::Measurement& measurement : result.measurements()) {
    const auto reading = ReadingOf(measurement, evidence.metric.metric);
    if (!reading.has_value()) continue;
    is_measured = true;
    if (reading->aggregate_only) {
      side.aggregate_only = true;
      if (!side.value.has_value()) side.value = reading->value;
    } else {
      evidence.readings.push_back(reading->value);
      if (!HasLogarithm(reading->value)) evidence.no_ratio = reading->value;
    }
  }
  if (evidence.is_measured && !is_measured) return;
  if (is_measured && !std::exchange(evidence.is_measured, true)) {
    side.run_ids.clear();
  }
  SetRun(run, result, side);
}

// The metrics by which a benchmark that measured nothing is judged where its
// time is not. Each side is scanned once.
class MetricsBesideTime {
 public:
  MetricsBesideTime(const SideEvidences& baseline,
                    const SideEvidences& candidate) {
    std::set<std::string> names;
    for (const SideEvidences* side : {&baseline, &candidate}) {
      for (const auto& [text, evidence] : *side) {
        const MetricInfo& metric = evidence.metric;
        if (metric.metric == kTimeMetric) continue;
        of_benchmark_.emplace(CanonicalText(evidence.key), metric);
        if (names.insert(metric.metric).second) all_.push_back(metric);
      }
    }
  }

  // One that the benchmark has, in the baseline first, or else any that is
  // judged.
  absl::optional<MetricInfo> Of(const SideEvidence& time,
                                const CompareOptions& options) const {
    const auto own = of_benchmark_.find(CanonicalText(time.key));
    if (own != of_benchmark_.end()) return own->second;
    const std::string name = DisplayName(time.key);
    for (const MetricInfo& metric : all_) {
      if (ThresholdOf(options, name, metric.metric)) return metric;
    }
    return absl::nullopt;
  }

 private:
  std::map<std::string, MetricInfo> of_benchmark_;  // by canonical text
  std::vector<MetricInfo> all_;
};

}  // namespace

absl::optional<Threshold> ThresholdOf(const CompareOptions& options,
                                      absl::string_view name,
                                      absl::string_view metric) {
  if (options.threshold != nullptr) return options.threshold(name, metric);
  if (metric != kTimeMetric) return absl::nullopt;
  return options.effects;
}

SideEvidences CollectEvidence(const std::vector<const proto::Run*>& runs,
                              const CompareOptions& options) {
  SideEvidences evidences;
  for (const proto::Run* run : runs) {
    for (const proto::BenchmarkResult& result : run->results()) {
      const std::string name = DisplayName(result.key());
      for (const MetricInfo& metric : MetricsOf(result)) {
        if (metric.metric != kTimeMetric &&
            !ThresholdOf(options, name, metric.metric)) {
          continue;
        }
        SideEvidence& evidence =
            evidences[PriorKey(result.key(), metric.metric)];
        evidence.key = result.key();
        evidence.metric = metric;
        AddReadings(*run, result, evidence);
      }
    }
  }
  for (auto& [text, evidence] : evidences) {
    evidence.side.processes = static_cast<int>(evidence.readings.size());
    // Raw readings beat aggregates where a side has both.
    if (!evidence.readings.empty()) {
      evidence.side.aggregate_only = false;
      evidence.side.value = Median(evidence.readings);
    }
    // A run fails or is skipped as a whole, whichever metrics are left.
    const SideEvidence& time =
        evidences.at(PriorKey(evidence.key, kTimeMetric));
    evidence.worst = time.worst;
    evidence.side.outcome = time.side.outcome;
    evidence.side.detail = time.side.detail;
    evidence.side.outcomes = time.side.outcomes;
  }
  return evidences;
}

void KeepJudged(const CompareOptions& options, SideEvidences* baseline,
                SideEvidences* candidate) {
  SideEvidences told;
  const MetricsBesideTime beside_time(*baseline, *candidate);
  for (const auto& [text, time] : *candidate) {
    if (time.metric.metric != kTimeMetric || Works(time.side.outcome) ||
        time.is_measured ||
        ThresholdOf(options, DisplayName(time.key), kTimeMetric)) {
      continue;
    }
    const auto metric = beside_time.Of(time, options);
    if (!metric) continue;
    const std::string key = PriorKey(time.key, metric->metric);
    told[key] = time;
    told[key].metric = *metric;
    const auto before = baseline->find(text);
    if (before == baseline->end() || baseline->count(key) > 0) continue;
    SideEvidence& unmeasured = (*baseline)[key] = before->second;
    unmeasured.metric = *metric;
    unmeasured.readings.clear();
    unmeasured.side.value.reset();
    unmeasured.side.processes = 0;
  }
  for (SideEvidences* side : {baseline, candidate}) {
    for (auto place = side->begin(); place != side->end();) {
      const SideEvidence& evidence = place->second;
      const bool is_judged = ThresholdOf(options, DisplayName(evidence.key),
                                         evidence.metric.metric)
                                 .has_value();
      place = is_judged ? std::next(place) : side->erase(place);
    }
  }
  candidate->merge(told);
}

}  // namespace optrail::tracker
