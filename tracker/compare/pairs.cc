#include "tracker/compare/pairs.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/statistics.h"
#include "base/units.h"
#include "tracker/compare/machine_slope.h"
#include "tracker/compare/process_log.h"
#include "tracker/series/series.h"

namespace optrail::tracker {
namespace {

using RunPointers = std::vector<const proto::Run*>;
using Round = std::pair<std::string, int>;  // pairing id and number

// Of log ratios whose rise is for the worse.
Verdict VerdictOf(PairedVerdict verdict) {
  switch (verdict) {
    case PairedVerdict::kHigher:
      return Verdict::kSlower;
    case PairedVerdict::kLower:
      return Verdict::kFaster;
    case PairedVerdict::kUnchanged:
      return Verdict::kUnchanged;
    case PairedVerdict::kCannotTell:
      break;
  }
  return Verdict::kCannotTell;
}

// PriorKey -> processes of each round.
using Processes =
    std::map<std::string, std::map<Round, std::vector<ProcessLog>>>;

Processes ProcessesOf(const RunPointers& runs) {
  Processes side;
  for (const proto::Run* run : runs) {
    for (const proto::BenchmarkResult& result : run->results()) {
      for (const MetricInfo& metric : MetricsOf(result)) {
        for (const proto::Measurement& measurement : result.measurements()) {
          const auto log = ProcessLogOf(measurement, metric.metric);
          if (!log.has_value()) continue;
          side[PriorKey(result.key(), metric.metric)]
              [{run->pairing_id(), measurement.round()}]
                  .push_back(*log);
        }
      }
    }
  }
  return side;
}

// How a benchmark follows the machine, of both sides together: what they differ
// by is taken out first. Nothing where a process does not know the machine.
MachineSlope SlopeOf(const Processes::mapped_type& baseline,
                     const Processes::mapped_type& candidate) {
  std::vector<double> values;
  std::vector<MachineState> states;
  for (const auto* side : {&baseline, &candidate}) {
    std::vector<double> mine;
    for (const auto& [round, processes] : *side) {
      for (const ProcessLog& process : processes) {
        if (!process.machine.has_value()) return MachineSlope();
        mine.push_back(process.value);
        states.push_back(*process.machine);
      }
    }
    const double center = Median(mine);
    for (const double value : mine) values.push_back(value - center);
  }
  if (values.empty()) return MachineSlope();
  return MachineSlope::Fit(values, states, /*processes=*/1);
}

// The mean of a round's processes, the machine taken out.
double MeanOf(const std::vector<ProcessLog>& processes,
              const MachineSlope& slope) {
  double sum = 0;
  for (const ProcessLog& process : processes) {
    sum += process.value;
    if (slope.exists()) sum -= slope.Explains(*process.machine);
  }
  return sum / static_cast<double>(processes.size());
}

std::set<std::string> PairingIds(const RunPointers& runs) {
  std::set<std::string> ids;
  for (const proto::Run* run : runs) ids.insert(run->pairing_id());
  return ids;
}

}  // namespace

absl::optional<PairedLogs> PairsOf(const RunPointers& baseline,
                                   const RunPointers& candidate) {
  const std::set<std::string> ids = PairingIds(baseline);
  if (ids != PairingIds(candidate) || ids.count("") > 0) return absl::nullopt;
  const Processes before = ProcessesOf(baseline);
  PairedLogs pairs;
  for (const auto& [key, rounds] : ProcessesOf(candidate)) {
    const auto found = before.find(key);
    if (found == before.end()) continue;
    const MachineSlope slope = SlopeOf(found->second, rounds);
    for (const auto& [round, processes] : rounds) {
      const auto other = found->second.find(round);
      if (other != found->second.end()) {
        pairs[key].push_back(MeanOf(processes, slope) -
                             MeanOf(other->second, slope));
      }
    }
  }
  return pairs;
}

int JudgePairs(absl::Span<const double> log_ratios,
               const PairedTestOptions& test, int tests, int most_rounds,
               Row* row) {
  const int rounds = static_cast<int>(log_ratios.size());
  // Positive is worse.
  const double sign = row->direction == proto::HIGHER_IS_BETTER ? -1 : 1;
  std::vector<double> worse(log_ratios.begin(), log_ratios.end());
  for (double& value : worse) value *= sign;
  const PairedEvidence evidence = PairedTest(worse, test);
  row->processes_needed.reset();
  row->minimum_detectable_effect.reset();
  row->worse_by_at_most.reset();
  row->ratio.reset();
  row->verdict = VerdictOf(evidence.verdict);
  row->worse_by = std::expm1(evidence.log_ratio);
  row->adjusted_p =
      evidence.log_ratio < 0 ? 1 : std::min(1., evidence.p_value * tests / 2);
  std::string ratios;
  if (rounds >= 2) {
    Ratio ratio;
    ratio.log_ratio = sign * evidence.log_ratio;
    ratio.ratio = std::exp(ratio.log_ratio);
    ratio.low = std::exp(sign > 0 ? evidence.inner_low : -evidence.inner_high);
    ratio.high = std::exp(sign > 0 ? evidence.inner_high : -evidence.inner_low);
    ratio.candidate = row->candidate.value.value_or(0);
    ratio.baseline = ratio.candidate / ratio.ratio;
    ratio.standard_error = evidence.standard_error;
    ratio.degrees_of_freedom = rounds - 1;
    // Of one process, where both are alike.
    ratio.process_spread = evidence.spread / std::sqrt(2.);
    ratio.baseline_processes = ratio.candidate_processes = rounds;
    ratio.baseline_runs = rounds;
    row->ratio = ratio;
    row->minimum_detectable_effect =
        std::expm1(evidence.inner_high - evidence.log_ratio);
    row->worse_by_at_most = std::expm1(evidence.inner_high);
    ratios =
        absl::StrCat("; ratios vary by ", FormatShortPercent(evidence.spread));
  }
  switch (row->verdict) {
    case Verdict::kSlower:
    case Verdict::kFaster:
      row->reason = absl::StrCat(
          FormatShortPercent(std::expm1(std::abs(evidence.log_ratio))),
          row->verdict == Verdict::kSlower ? " worse" : " better", " over ",
          rounds, " rounds", ratios);
      return rounds;
    case Verdict::kUnchanged:
      row->reason = absl::StrCat(
          test.upwards_only
              ? absl::StrCat("worse by at most ",
                             FormatShortPercent(
                                 std::max(0., std::expm1(evidence.inner_high))))
              : absl::StrCat("less than ",
                             FormatShortPercent(test.detect_effect),
                             " either way"),
          ratios);
      return rounds;
    default:
      break;
  }
  const int needed = PredictRounds(evidence, test, most_rounds);
  if (needed < most_rounds) row->processes_needed = needed;
  row->reason =
      absl::StrCat("not clear after ", rounds, " rounds", ratios,
                   needed < most_rounds
                       ? absl::StrCat(": about ", needed, " rounds would tell")
                       : ": no reasonable number of rounds tells");
  return needed;
}

}  // namespace optrail::tracker
