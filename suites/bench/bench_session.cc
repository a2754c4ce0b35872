#include "suites/bench/bench_session.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "base/clock.h"
#include "base/random.h"
#include "suites/stopwatch/stopwatch.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

// One or two clean samples of a disturbed process are no evidence.
bool Tells(const Evaluation& evaluation) {
  const proto::Trial& trial = evaluation.trial();
  if (trial.measurements().empty()) return false;
  return trial.outcome() == proto::OK ||
         (trial.outcome() == proto::CONTENDED &&
          SamplesThatTell(trial.measurements(0)) >= kSamplesOfContended);
}

// The loop that a neighbour on the core's other hardware thread slows most, and
// how much slower than beside the calmest process is slow: without one it
// varies by 4%, beside one it takes 7% to 40% more (docs/method/gating.md).
constexpr absl::string_view kCoreLoop = "l1";
constexpr double kSlowCore = 1.055;

// Infinite where it was not read.
double CoreLoopNs(const proto::Measurement& measurement) {
  for (const auto& loop : measurement.conditions().calibrations()) {
    if (loop.loop() == kCoreLoop && loop.fastest_ns() > 0) {
      return loop.fastest_ns();
    }
  }
  return std::numeric_limits<double>::infinity();
}

// What was disturbed, and may be read again.
bool IsUndecided(const Evaluation& evaluation) {
  return evaluation.trial().outcome() == proto::CONTENDED && !Tells(evaluation);
}

// Whether one process can measure both: nothing but backend and config differ.
bool CanShareProcess(proto::Task one, proto::Task other) {
  for (proto::Task* task : {&one, &other}) {
    task->clear_backend();
    task->clear_kernel_id();
  }
  return tuning::TaskText(one) == tuning::TaskText(other);
}

// The first attempt that tells or failed, else the last.
Evaluation EvaluateUndisturbed(Evaluator& evaluator, const BenchCase& bench,
                               const EvaluationOptions& options) {
  Evaluation evaluation;
  for (int attempt = 0; attempt < kBenchAttempts; ++attempt) {
    evaluation = evaluator.Evaluate(bench.config, options);
    if (!IsUndecided(evaluation)) break;
  }
  return evaluation;
}

class Session {
 public:
  Session(const std::vector<BenchCase>& cases, const BenchOptions& options,
          const EvaluatorFactory& make_evaluator)
      : cases_(cases),
        options_(options),
        total_(options.processes * static_cast<int>(cases.size())) {
    for (const BenchCase& bench : cases) {
      results_.push_back(bench.result);
      evaluators_.push_back(make_evaluator(bench.task));
    }
  }

  std::vector<proto::BenchmarkResult> Run() {
    Rng rng(options_.seed);
    std::vector<size_t> order(cases_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    for (int round = 1; round <= options_.processes; ++round) {
      if (options_.random_interleaving) rng.Shuffle(order);
      MeasureRound(order, round);
    }
    int allowed = total_;
    for (int attempt = 1; attempt < kBenchAttempts; ++attempt) {
      MeasureSlowOnesAgain(&allowed);
    }
    SayOneByOne();
    for (proto::BenchmarkResult& result : results_) Conclude(&result);
    return std::move(results_);
  }

 private:
  void MeasureRound(const std::vector<size_t>& order, int round) {
    std::vector<bool> done(cases_.size());
    for (size_t at = 0; at < order.size(); ++at) {
      if (done[order[at]]) continue;
      std::vector<size_t> group = {order[at]};
      for (size_t next = at + 1; next < order.size(); ++next) {
        if (!done[order[next]] && IsOpen(order[next]) &&
            CanShareProcess(cases_[order[at]].task, cases_[order[next]].task)) {
          group.push_back(order[next]);
        }
      }
      if (!IsOpen(order[at])) group.resize(1);
      for (const size_t i : group) done[i] = true;
      if (Recall(group, round)) continue;
      std::map<size_t, absl::optional<proto::Measurement>> measurements =
          MeasureInTurns(group, round);
      bool in_turns = !measurements.empty();
      if (!in_turns) {
        // One by one, which finds out what is wrong with whom.
        for (const size_t i : group) measurements[i] = Measure(i, round);
        std::vector<size_t> sound;
        for (const size_t i : group) {
          if (IsOpen(i)) sound.push_back(i);
        }
        if (sound.size() < group.size()) {
          for (auto& [i, measurement] : MeasureInTurns(sound, round)) {
            measurements[i] = std::move(measurement);
            in_turns = true;
          }
        }
        if (!in_turns && sound.size() > 1) {
          one_by_one_.push_back(
              absl::StrCat(tracker::DisplayName(results_[group[0]].key()),
                           " in round ", round));
        }
      }
      in_turns_ += in_turns ? 1 : 0;
      Keep(group, round, measurements);
      for (auto& [i, measurement] : measurements) {
        if (measurement.has_value()) {
          *results_[i].add_measurements() = *std::move(measurement);
        }
      }
    }
  }

  // Notes the benchmarks that a device measured alone although it interleaves
  // samples: their ratios compare other processes, at other times.
  void SayOneByOne() const {
    if (in_turns_ == 0 || one_by_one_.empty()) return;
    std::cerr << "note: " << one_by_one_.size() << " of "
              << in_turns_ + static_cast<int>(one_by_one_.size())
              << " groups of benchmarks were measured one by one, not "
                 "interleaved, so that their ratios say less: those of "
              << one_by_one_[0] << (one_by_one_.size() > 1 ? ", ..." : "")
              << "\n";
  }

  // Whether the group was measured in this round before an interruption; its
  // results are then as they were.
  bool Recall(const std::vector<size_t>& group, int round) {
    if (options_.journal == nullptr) return false;
    const proto::BenchJournalRecord::Readings* const kept =
        options_.journal->Find(round, {group.begin(), group.end()});
    if (kept == nullptr) return false;
    for (const auto& reading : kept->readings()) {
      proto::BenchmarkResult& result =
          results_[static_cast<size_t>(reading.benchmark())];
      total_ = std::max(total_, ++done_);
      if (reading.outcome() != proto::OUTCOME_UNSPECIFIED) {
        result.set_outcome(reading.outcome());
        result.set_detail(reading.detail());
      }
      if (reading.has_measurement()) {
        *result.add_measurements() = reading.measurement();
      }
    }
    return true;
  }

  void Keep(
      const std::vector<size_t>& group, int round,
      const std::map<size_t, absl::optional<proto::Measurement>>& measured) {
    if (options_.journal == nullptr) return;
    proto::BenchJournalRecord::Readings readings;
    readings.set_round(round);
    readings.set_elapsed_ns(options_.elapsed_ns + Clock::Real()->NowNs() -
                            start_ns_);
    // In the order in which Recall asks.
    for (const size_t i : group) {
      const absl::optional<proto::Measurement>& measurement = measured.at(i);
      proto::BenchJournalRecord::Reading& reading = *readings.add_readings();
      reading.set_benchmark(static_cast<int>(i));
      reading.set_outcome(results_[i].outcome());
      reading.set_detail(results_[i].detail());
      if (measurement.has_value()) {
        *reading.mutable_measurement() = *measurement;
      }
    }
    // A full disk must not end what can still be printed.
    const absl::Status kept = options_.journal->Keep(readings);
    if (kept.ok() || said_not_kept_) return;
    said_not_kept_ = true;
    std::cerr << "note: not kept, should this be interrupted: "
              << kept.message() << "\n";
  }

  bool IsOpen(size_t i) const {
    return results_[i].outcome() == proto::OUTCOME_UNSPECIFIED;
  }

  void ReportProgress(size_t i) {
    total_ = std::max(total_, ++done_);  // more, where some are read again
    if (options_.on_progress) {
      options_.on_progress(done_, total_,
                           tracker::DisplayName(results_[i].key()));
    }
  }

  EvaluationOptions OptionsFor(int round) const {
    EvaluationOptions options;
    options.sampling = options_.sampling;
    *options.metering.mutable_metrics() = {options_.metrics.begin(),
                                           options_.metrics.end()};
    options.metering.set_windows(options_.meter_windows);
    options.metering.set_min_window_ns(
        absl::ToInt64Nanoseconds(options_.meter_window));
    options.zero_inputs = options_.zero_inputs;
    options.fresh_process = true;
    options.input_seed = static_cast<uint64_t>(round - 1);
    return options;
  }

  // Empty where they cannot be sampled in turns.
  std::map<size_t, absl::optional<proto::Measurement>> MeasureInTurns(
      const std::vector<size_t>& group, int round) {
    if (group.size() < 2) return {};
    Evaluator& evaluator = *evaluators_[group[0]];
    if (!evaluator.policy().interleaves_rounds) return {};
    std::vector<Contender> contenders;
    for (const size_t i : group) {
      contenders.push_back(
          ContenderOf(cases_[i].task.backend(), cases_[i].config));
    }
    std::vector<Evaluation> evaluations;
    for (int attempt = 0; attempt < kBenchAttempts; ++attempt) {
      evaluations = evaluator.Measure(contenders, OptionsFor(round));
      if (evaluations.size() < group.size()) return {};
      if (std::none_of(evaluations.begin(), evaluations.end(), IsUndecided)) {
        break;
      }
    }
    std::map<size_t, absl::optional<proto::Measurement>> measurements;
    for (size_t i = 0; i < group.size(); ++i) {
      ReportProgress(group[i]);
      measurements[group[i]] = Noted(evaluations[i], round, group[i]);
    }
    return measurements;
  }

  // What a fresh process tells, if it does; what failed is the result's.
  absl::optional<proto::Measurement> Measure(size_t i, int round) {
    ReportProgress(i);
    if (!IsOpen(i)) return absl::nullopt;
    return Noted(
        EvaluateUndisturbed(*evaluators_[i], cases_[i], OptionsFor(round)),
        round, i);
  }

  absl::optional<proto::Measurement> Noted(const Evaluation& evaluation,
                                           int round, size_t i) {
    proto::BenchmarkResult& result = results_[i];
    const proto::Trial& trial = evaluation.trial();
    if (trial.outcome() != proto::OK && trial.outcome() != proto::CONTENDED) {
      result.set_outcome(trial.outcome());
      result.set_detail(trial.detail());
    } else if (!trial.detail().empty()) {
      result.set_detail(trial.detail());  // who disturbed: Conclude()
    }
    if (!Tells(evaluation)) return absl::nullopt;
    proto::Measurement measurement = trial.measurements(0);
    measurement.set_round(round);
    return measurement;
  }

  // Where the loops beside a process were slow, its core was, whatever the code
  // took; another one, later, takes its place if they are faster there.
  void MeasureSlowOnesAgain(int* allowed) {
    double calm_ns = std::numeric_limits<double>::infinity();
    for (const proto::BenchmarkResult& result : results_) {
      for (const proto::Measurement& measurement : result.measurements()) {
        calm_ns = std::min(calm_ns, CoreLoopNs(measurement));
      }
    }
    for (size_t i = 0; i < cases_.size(); ++i) {
      for (auto& measurement : *results_[i].mutable_measurements()) {
        const double core_ns = CoreLoopNs(measurement);
        if (!std::isfinite(core_ns) || core_ns <= kSlowCore * calm_ns ||
            *allowed == 0) {
          continue;
        }
        --*allowed;
        const auto again = Measure(i, measurement.round());
        if (again.has_value() && CoreLoopNs(*again) < core_ns) {
          measurement = *again;
        }
      }
    }
  }

  void Conclude(proto::BenchmarkResult* result) const {
    if (result->outcome() != proto::OUTCOME_UNSPECIFIED) return;
    int told = 0;
    for (const proto::Measurement& measurement : result->measurements()) {
      told += measurement.has_median_ns() ? 1 : 0;
    }
    result->set_outcome(2 * told >= options_.processes ? proto::OK
                                                       : proto::CONTENDED);
    if (result->outcome() == proto::OK) {
      result->clear_detail();
    } else {
      result->set_detail(absl::StrCat("too few undisturbed samples",
                                      result->detail().empty()
                                          ? "; is the machine busy?"
                                          : ": " + result->detail()));
    }
  }

  const std::vector<BenchCase>& cases_;
  const BenchOptions& options_;
  std::vector<std::unique_ptr<Evaluator>> evaluators_;
  std::vector<proto::BenchmarkResult> results_;
  int total_;
  int done_ = 0;
  const int64_t start_ns_ = Clock::Real()->NowNs();
  bool said_not_kept_ = false;
  int in_turns_ = 0;                     // groups
  std::vector<std::string> one_by_one_;  // the others, by their first
};

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
  return Session(cases, options, make_evaluator).Run();
}

}  // namespace optrail::suites
