#include "suites/bench/bench_session.h"

#include <numeric>
#include <utility>

#include "base/random.h"
#include "suites/stopwatch/stopwatch.h"
#include "tracker/series/series_key.h"

namespace optrail::suites {
namespace {

// One or two clean samples of a disturbed process are no evidence.
bool Tells(const Evaluation& evaluation) {
  if (!evaluation.measurement.has_value()) return false;
  return evaluation.outcome == proto::OK ||
         (evaluation.outcome == proto::CONTENDED &&
          SamplesThatTell(*evaluation.measurement) >= kSamplesOfContended);
}

// The first attempt that tells or failed, else the last.
Evaluation EvaluateUndisturbed(Evaluator& evaluator, const BenchCase& bench,
                               const EvaluationOptions& options) {
  Evaluation evaluation;
  for (int attempt = 0; attempt < kBenchAttempts; ++attempt) {
    evaluation = evaluator.Evaluate(bench.config, options);
    if (evaluation.outcome != proto::CONTENDED || Tells(evaluation)) break;
  }
  return evaluation;
}

}  // namespace

proto::SamplingOptions BenchSamplingOptions() {
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_min_time_ns(40'000'000);
  options.set_max_time_ns(500'000'000);
  options.set_max_samples(2000);
  return options;
}

std::vector<proto::BenchmarkResult> RunBenchSession(
    const std::vector<BenchCase>& cases, const BenchOptions& options,
    const EvaluatorFactory& make_evaluator) {
  std::vector<proto::BenchmarkResult> results;
  std::vector<std::unique_ptr<Evaluator>> evaluators;
  for (const BenchCase& bench : cases) {
    results.push_back(bench.result);
    evaluators.push_back(make_evaluator(bench.task));
  }
  Rng rng(options.seed);
  std::vector<size_t> order(cases.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const int total = options.processes * static_cast<int>(cases.size());
  int done = 0;
  for (int round = 0; round < options.processes; ++round) {
    if (options.random_interleaving) rng.Shuffle(order);
    for (size_t i : order) {
      proto::BenchmarkResult& result = results[i];
      ++done;
      if (options.on_progress) {
        options.on_progress(done, total, tracker::DisplayName(result.key()));
      }
      if (result.outcome() != proto::OUTCOME_UNSPECIFIED) continue;
      EvaluationOptions evaluation_options;
      evaluation_options.sampling = options.sampling;
      evaluation_options.metrics = options.metrics;
      evaluation_options.fresh_process = true;
      evaluation_options.input_seed = static_cast<uint64_t>(round);
      const Evaluation evaluation =
          EvaluateUndisturbed(*evaluators[i], cases[i], evaluation_options);
      if (Tells(evaluation)) {
        *result.add_measurements() = *evaluation.measurement;
        result.mutable_measurements(result.measurements_size() - 1)
            ->set_round(round + 1);
      }
      if (evaluation.outcome != proto::OK &&
          evaluation.outcome != proto::CONTENDED) {
        result.set_outcome(evaluation.outcome);
        result.set_detail(evaluation.detail);
      }
    }
  }
  for (proto::BenchmarkResult& result : results) {
    if (result.outcome() != proto::OUTCOME_UNSPECIFIED) continue;
    int told = 0;
    for (const proto::Measurement& measurement : result.measurements()) {
      told += measurement.has_median_ns() ? 1 : 0;
    }
    result.set_outcome(2 * told >= options.processes ? proto::OK
                                                     : proto::CONTENDED);
    if (result.outcome() == proto::CONTENDED) {
      result.set_detail("too few undisturbed samples; is the machine busy?");
    }
  }
  return results;
}

}  // namespace optrail::suites
