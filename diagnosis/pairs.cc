#include "diagnosis/pairs.h"

#include <algorithm>

#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "suites/stopwatch/stopwatch.h"

namespace optrail::diagnosis {

using proto::Perturbation;
using suites::Contender;
using suites::Evaluation;

absl::StatusOr<Number> Pairs::Of(const Perturbation& twin,
                                 const Perturbation* base) const {
  // Even without a change, the first is a perturbed one: its results were
  // compared with the reference once, before the experiments.
  Contender first =
      suites::ContenderOf(subject_.entry.task.backend(), subject_.config);
  Contender second = first;
  *first.mutable_perturbation() = base != nullptr ? *base : Perturbation();
  *second.mutable_perturbation() = twin;
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<Evaluation> both,
      evaluator_.EvaluatePerturbed({first, second}, options_));
  return GainOf(both[0], both[1]);
}

absl::StatusOr<Number> Pairs::Set(absl::string_view name,
                                  const Perturbation& twin,
                                  absl::string_view how,
                                  const Perturbation* base,
                                  Numbers* numbers) const {
  absl::StatusOr<Number> gain = Of(twin, base);
  if (gain.ok()) {
    numbers->Set(name, *gain, how);
  } else {
    numbers->SetUnsupported(name, gain.status().message());
  }
  return gain;
}

void SetGain(absl::string_view name, const Evaluation& base,
             const Evaluation& twin, absl::string_view how, Numbers* numbers) {
  if (base.trial().has_time_ns() && twin.trial().has_time_ns()) {
    numbers->Set(name, 1 - twin.trial().time_ns() / base.trial().time_ns(),
                 how);
  } else {
    numbers->SetUnsupported(
        name, WhyUntimed(twin.trial().has_time_ns() ? base : twin));
  }
}

double DisturbedShare(const Evaluation& evaluation) {
  if (evaluation.trial().measurements().empty() ||
      evaluation.trial().measurements(0).sample_ns_size() == 0) {
    return 0;
  }
  return static_cast<double>(
             evaluation.trial().measurements(0).contended_samples_size()) /
         evaluation.trial().measurements(0).sample_ns_size();
}

std::string WhyUntimed(const Evaluation& evaluation) {
  return evaluation.trial().detail().empty()
             ? proto::Outcome_Name(evaluation.trial().outcome())
             : evaluation.trial().detail();
}

void AddFacts(const suites::Facts& facts, Numbers* numbers) {
  for (const proto::Fact& fact : facts) {
    const bool spills =
        fact.name() == "spill_store_bytes" || fact.name() == "local_bytes";
    numbers->Set(spills ? "spill_bytes" : fact.name(),
                 static_cast<double>(fact.value()), "told by the compiler");
  }
}

void AddObserved(const Evaluation& profile, Numbers* numbers) {
  AddFacts(profile.trial().facts(), numbers);
  for (const proto::MetricSamples& metric :
       profile.trial().measurements(0).metrics()) {
    if (metric.values_size() == 0) continue;
    numbers->Set(metric.metric(),
                 Median(std::vector<double>(metric.values().begin(),
                                            metric.values().end())),
                 "observed calls");
  }
}

proto::SamplingOptions PairSampling() {
  proto::SamplingOptions sampling = suites::DefaultSamplingOptions();
  sampling.set_min_sample_ns(200'000);
  sampling.set_warm_up_ns(3'000'000);
  sampling.set_min_samples(15);
  sampling.set_max_samples(101);
  sampling.set_max_time_ns(250'000'000);
  sampling.set_target_relative_half_width(.01);
  return sampling;
}

Number GainOf(const Evaluation& base, const Evaluation& twin) {
  constexpr int kEnoughPairs = 9;
  constexpr double kConfidence = .95;
  const proto::Measurement& a = base.trial().measurements(0);
  const proto::Measurement& b = twin.trial().measurements(0);
  std::vector<double> clean, all;
  // Per call; without its waiting for a core, where that is known.
  const auto time_ns = [](const proto::Measurement& measurement, int i,
                          bool* is_clean) {
    int64_t ns = measurement.sample_ns(i);
    for (int k = 0; k < measurement.contended_samples_size(); ++k) {
      if (measurement.contended_samples(k) != i) continue;
      *is_clean = false;
      if (k < measurement.unwaited_ns_size() &&
          measurement.unwaited_ns(k) > 0) {
        ns = measurement.unwaited_ns(k);
      }
    }
    return static_cast<double>(ns) /
           static_cast<double>(measurement.calls_per_sample());
  };
  const int pairs = std::min(a.sample_ns_size(), b.sample_ns_size());
  for (int i = 0; i < pairs; ++i) {
    bool is_clean = true;
    const double ratio = time_ns(b, i, &is_clean) / time_ns(a, i, &is_clean);
    all.push_back(ratio);
    if (is_clean) clean.push_back(ratio);
  }
  const std::vector<double>& ratios =
      clean.size() >= kEnoughPairs ? clean : all;
  if (ratios.empty()) return 0;
  const Interval interval = MedianInterval(ratios, kConfidence);
  return {1 - Median(ratios), 1 - interval.high, 1 - interval.low};
}

}  // namespace optrail::diagnosis
