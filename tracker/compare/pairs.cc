#include "tracker/compare/pairs.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/stats/paired_test.h"
#include "base/stats/statistics.h"
#include "base/text/units.h"
#include "tracker/compare/machine_slope.h"
#include "tracker/compare/process_log.h"
#include "tracker/series/series.h"
#include "tracker/series/value_text.h"

namespace optrail::tracker {
namespace {

using RunPointers = std::vector<const proto::Run*>;
using Round = std::pair<std::string, int>;  // pairing id and number

constexpr int kMostRounds = 400;  // that anybody is asked for

// The verdict on log ratios whose rise is for the worse.
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

// Processes of each round.
using Rounds = std::map<Round, std::vector<ProcessLog>>;
using Processes = std::map<std::string, Rounds>;  // by PriorKey

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
MachineSlope SlopeOf(const Rounds& baseline, const Rounds& candidate) {
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

// Adds how much a side's samples lie above their fastest; false where a process
// does not tell.
bool AddShape(const std::vector<ProcessLog>& processes, double sign,
              SampleShape* shift) {
  for (const ProcessLog& process : processes) {
    if (!process.shape.has_value()) return false;
    const double share = sign / static_cast<double>(processes.size());
    shift->median += share * process.shape->median;
    shift->upper += share * process.shape->upper;
  }
  return true;
}

// Either all have their fastest sample, which it returns, or all their median.
bool MatchReadings(Rounds* baseline, Rounds* candidate) {
  bool fastest = true;
  for (const Rounds* side : {baseline, candidate}) {
    for (const auto& [round, processes] : *side) {
      for (const ProcessLog& process : processes) {
        fastest = fastest && process.shape.has_value();
      }
    }
  }
  if (fastest) return true;
  for (Rounds* side : {baseline, candidate}) {
    for (auto& [round, processes] : *side) {
      for (ProcessLog& process : processes) UseMedian(&process);
    }
  }
  return false;
}

PairedBenchmark PairUp(Rounds baseline, Rounds candidate) {
  PairedBenchmark paired;
  paired.of_fastest = MatchReadings(&baseline, &candidate);
  const MachineSlope slope = SlopeOf(baseline, candidate);
  bool shapes = true;
  double after_sum = 0;
  for (const auto& [round, processes] : candidate) {
    const auto other = baseline.find(round);
    if (other == baseline.end()) continue;
    const double before = MeanOf(other->second, slope);
    const double after = MeanOf(processes, slope);
    after_sum += after;
    paired.log_ratios.push_back(after - before);
    SampleShape shift;
    shapes = shapes && AddShape(processes, 1, &shift) &&
             AddShape(other->second, -1, &shift);
    paired.median_shifts.push_back(shift.median);
    paired.upper_shifts.push_back(shift.upper);
  }
  if (!shapes) {
    paired.median_shifts.clear();
    paired.upper_shifts.clear();
  }
  const auto rounds = static_cast<double>(paired.log_ratios.size());
  if (rounds > 0) paired.log_candidate = after_sum / rounds;
  paired.one_sided = static_cast<int>(baseline.size() + candidate.size() -
                                      2 * paired.log_ratios.size());
  return paired;
}

std::set<std::string> PairingIds(const RunPointers& runs) {
  std::set<std::string> ids;
  for (const proto::Run* run : runs) ids.insert(run->pairing_id());
  return ids;
}

// Fills in what the test says of how much the row changed.
void SetRatio(const PairedEvidence& evidence, const PairedTestOptions& test,
              const PairedBenchmark& pairs, double power, Row* row) {
  const int rounds = evidence.rounds;
  const double sign = row->direction == proto::HIGHER_IS_BETTER ? -1 : 1;
  Ratio ratio;
  ratio.log_ratio = sign * evidence.log_ratio;
  ratio.ratio = std::exp(ratio.log_ratio);
  ratio.low = std::exp(sign > 0 ? evidence.inner_low : -evidence.inner_high);
  ratio.high = std::exp(sign > 0 ? evidence.inner_high : -evidence.inner_low);
  ratio.candidate = std::exp(pairs.log_candidate);
  ratio.baseline = ratio.candidate / ratio.ratio;
  ratio.of_fastest = pairs.of_fastest;
  ratio.standard_error = evidence.standard_error;
  ratio.degrees_of_freedom = rounds - 1;
  // Of one process, where both are alike.
  ratio.process_spread = evidence.spread / std::sqrt(2.);
  ratio.baseline_processes = ratio.candidate_processes = rounds;
  ratio.baseline_runs = rounds;
  row->ratio = ratio;
  row->minimum_detectable_effect = MinimumDetectableEffect(
      evidence.standard_error, rounds - 1,
      CriticalT(rounds, 2 * test.false_alarm_rate, test.variances), power,
      test.min_effect);
  row->worse_by_at_most = std::expm1(evidence.inner_high);
}

std::string ReasonOf(const PairedEvidence& evidence,
                     const PairedTestOptions& test, Row* row) {
  const int rounds = evidence.rounds;
  const std::string ratios =
      rounds < 2 ? ""
                 : absl::StrCat("; ratios vary by ",
                                FormatShortPercent(evidence.spread));
  switch (row->verdict) {
    case Verdict::kSlower:
    case Verdict::kFaster:
      return absl::StrCat(FormatShortPercent(std::abs(row->ratio->ratio - 1)),
                          " ", ChangeWord(row->ratio->ratio - 1, row->metric),
                          " over ", rounds, " rounds", ratios);
    case Verdict::kUnchanged:
      return absl::StrCat(UnchangedText(*row, /*is_for_bad_runs=*/false),
                          ratios);
    default:
      break;
  }
  const int needed = PredictRounds(evidence, test, kMostRounds);
  if (needed < kMostRounds) row->processes_needed = needed;
  return absl::StrCat(
      "not clear after ", rounds, " rounds", ratios,
      needed < kMostRounds
          ? absl::StrCat(": about ", needed, " rounds would tell")
          : ": no reasonable number of rounds tells");
}

// `test.false_alarm_rate` is the row's share of the comparison's, one of
// `tests`.
void DecideRow(const PairedBenchmark& pairs, const PairedTestOptions& test,
               int tests, double power, Row* row) {
  // Positive is worse.
  const double sign = row->direction == proto::HIGHER_IS_BETTER ? -1 : 1;
  std::vector<double> worse = pairs.log_ratios;
  for (double& value : worse) value *= sign;
  const PairedEvidence evidence = PairedTest(worse, test);
  row->rounds = evidence.rounds;
  row->verdict = VerdictOf(evidence.verdict);
  row->worse_by = std::expm1(evidence.log_ratio);
  row->adjusted_p =
      evidence.log_ratio < 0 ? 1 : std::min(1., evidence.p_value * tests / 2);
  if (pairs.one_sided > evidence.rounds) {
    row->verdict = Verdict::kCannotTell;
    row->reason =
        absl::StrCat("measured by both sides in ", evidence.rounds, " of ",
                     evidence.rounds + pairs.one_sided, " rounds");
    return;
  }
  if (evidence.rounds >= 2) SetRatio(evidence, test, pairs, power, row);
  row->reason = ReasonOf(evidence, test, row);
  for (const auto& [shifts, part] :
       {std::make_pair(&pairs.median_shifts, SamplePart::kMedian),
        std::make_pair(&pairs.upper_shifts, SamplePart::kUpperQuartile)}) {
    if (shifts->empty()) continue;
    const PairedEvidence shift = PairedTest(*shifts, test);
    if (shift.verdict != PairedVerdict::kHigher) continue;
    NoteShape(part, shift.log_ratio, row);
    return;
  }
}

// A window of several commits tells more than its last one.
bool AreOfOneCommit(const RunPointers& runs) {
  return std::all_of(runs.begin(), runs.end(), [&](const proto::Run* run) {
    return run->commit().id() == runs.front()->commit().id();
  });
}

// The benchmarks of the runs, or those of the runs whose pairing id is among
// `ids` where it is given.
std::set<std::string> BenchmarksOf(const RunPointers& runs,
                                   const std::set<std::string>* ids) {
  std::set<std::string> benchmarks;
  for (const proto::Run* run : runs) {
    if (ids != nullptr && ids->count(run->pairing_id()) == 0) continue;
    for (const proto::BenchmarkResult& result : run->results()) {
      benchmarks.insert(CanonicalText(result.key()));
    }
  }
  return benchmarks;
}

}  // namespace

std::string UnchangedText(const Row& row, bool is_for_bad_runs) {
  constexpr double kRounding = 1e-6;
  const double at_most = *row.worse_by_at_most;
  std::string text =
      absl::StrCat("worse by at most ",
                   FormatShortPercent(at_most < kRounding ? 0 : at_most));
  if (!row.DetectsLittle()) return text;
  absl::StrAppend(
      &text, "; a worsening below ",
      FormatShortPercent(*row.minimum_detectable_effect), " may be ",
      is_for_bad_runs ? "taken for one of its bad runs, and be " : "",
      "called can't tell");
  return text;
}

std::string KeepPairs(RunPointers* baseline, RunPointers* candidate) {
  const std::set<std::string> before = PairingIds(*baseline);
  std::set<std::string> shared;
  for (const std::string& id : PairingIds(*candidate)) {
    if (!id.empty() && before.count(id) > 0) shared.insert(id);
  }
  if (shared.empty()) return "";
  for (const RunPointers* side : {baseline, candidate}) {
    if (!AreOfOneCommit(*side)) return "";
    if (BenchmarksOf(*side, &shared) != BenchmarksOf(*side, nullptr)) return "";
  }
  std::vector<std::string> left_out;
  for (RunPointers* side : {baseline, candidate}) {
    RunPointers kept;
    for (const proto::Run* run : *side) {
      if (shared.count(run->pairing_id()) > 0) {
        kept.push_back(run);
      } else {
        left_out.push_back(run->run_id());
      }
    }
    *side = std::move(kept);
  }
  if (left_out.empty()) return "";
  return absl::StrCat("both sides were measured in pairs, which are judged; ",
                      left_out.size() == 1 ? "run " : "runs ",
                      absl::StrJoin(left_out, ", "), " measured apart ",
                      left_out.size() == 1 ? "is" : "are", " left out");
}

absl::optional<PairedRounds> PairsOf(const RunPointers& baseline,
                                     const RunPointers& candidate,
                                     const ComparedRows& compared) {
  const std::set<std::string> ids = PairingIds(baseline);
  if (ids != PairingIds(candidate) || ids.count("") > 0) return absl::nullopt;
  const Processes before = ProcessesOf(baseline);
  PairedRounds pairs;
  for (const auto& [key, rounds] : ProcessesOf(candidate)) {
    const auto name = compared.find(key);
    const auto found = before.find(name == compared.end() ? key : name->second);
    if (found != before.end()) pairs[key] = PairUp(found->second, rounds);
  }
  return pairs;
}

void DecidePairs(const PairedRounds& pairs, const CompareOptions& options,
                 const std::vector<Row*>& rows) {
  const int tests = std::max<int>(1, static_cast<int>(rows.size()));
  for (Row* row : rows) {
    PairedTestOptions test;
    test.false_alarm_rate = options.false_alarm_rate / tests;
    test.miss_rate = 1 - options.power;
    // A gate need not wait to learn by how much the candidate is better.
    test.upwards_only = true;
    test.min_rounds = options.min_rounds;
    test.min_effect = row->threshold.min_effect;
    test.detect_effect = row->threshold.detect_effect;
    const std::string key = PriorKey(row->key, row->metric);
    const std::string renamed =
        row->verdict == Verdict::kRenamed ? row->reason + "; " : "";
    const auto found = pairs.find(key);
    DecideRow(found == pairs.end() ? PairedBenchmark() : found->second, test,
              tests, options.power, row);
    if (renamed.empty()) continue;
    row->reason = renamed + row->reason;
    if (row->verdict == Verdict::kUnchanged ||
        row->verdict == Verdict::kFaster) {
      row->verdict = Verdict::kRenamed;
    }
  }
}

}  // namespace optrail::tracker
