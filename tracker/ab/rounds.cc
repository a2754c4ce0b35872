#include "tracker/ab/rounds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/statistics.h"
#include "base/status_macros.h"
#include "tracker/compare/pairs.h"
#include "tracker/import/import.h"
#include "tracker/series/series.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

// How far beyond max_rounds a forecast looks.
constexpr int kForecastFactor = 10;

absl::Status CheckOptions(const AbOptions& options) {
  const PairedTestOptions& test = options.test;
  const auto wrong = [](absl::string_view field, double value,
                        absl::string_view expected) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is ", value, ", expected ", expected));
  };
  if (!(test.false_alarm_rate > 0 && test.false_alarm_rate < .5)) {
    return wrong("false_alarm_rate", test.false_alarm_rate,
                 "more than 0 and less than 0.5");
  }
  if (!(test.min_effect >= 0 && test.min_effect < 10)) {
    return wrong("min_effect", test.min_effect, "0 to 10");
  }
  if (!(test.detect_effect > 0 && test.detect_effect < 10)) {
    return wrong("detect_effect", test.detect_effect, "more than 0, up to 10");
  }
  if (test.min_effect > test.detect_effect) {
    return absl::InvalidArgumentError(absl::StrCat(
        "min_effect is ", test.min_effect, " and detect_effect ",
        test.detect_effect, ": expected min_effect to be at most the other"));
  }
  if (options.max_rounds < test.min_rounds) {
    return wrong("max_rounds", options.max_rounds,
                 absl::StrCat("at least ", test.min_rounds));
  }
  return absl::OkStatus();
}

absl::StatusOr<proto::Run> Parse(absl::string_view name,
                                 const ProcessResult& result) {
  ImportOptions options;
  options.files_are_processes = true;
  std::vector<ImportedFile> files = result.files;
  for (ImportedFile& file : files) {
    file.path = absl::StrCat(file.path, " of ", name);
  }
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<proto::Run> runs,
                           ImportContents(files, options));
  if (runs[0].results().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "output of ", name, " holds no benchmark: does a filter leave none?"));
  }
  return std::move(runs[0]);
}

// PriorKey -> what one process read; the median where a file holds several.
std::map<std::string, double> Readings(const proto::Run& run) {
  std::map<std::string, double> readings;
  for (const proto::BenchmarkResult& result : run.results()) {
    if (result.outcome() != proto::OK || result.measurements().empty()) {
      continue;
    }
    for (const MetricInfo& metric : MetricsOf(result)) {
      std::vector<double> values;
      for (const proto::Measurement& measurement : result.measurements()) {
        const auto reading = ReadingOf(measurement, metric.metric);
        if (reading.has_value() && std::isfinite(reading->value) &&
            reading->value > 0) {
          values.push_back(reading->value);
        }
      }
      if (values.empty()) continue;
      readings[PriorKey(result.key(), metric.metric)] = Median(values);
    }
  }
  return readings;
}

class Rounds {
 public:
  Rounds(const AbOptions& options, const MeasureFunction& measure)
      : options_(options), measure_(measure), test_(options.test) {
    compare_.threshold =
        [this](absl::string_view name,
               absl::string_view metric) -> absl::optional<Threshold> {
      if (options_.threshold != nullptr) {
        return options_.threshold(name, metric);
      }
      if (metric != "time") return absl::nullopt;
      Threshold threshold;
      threshold.min_effect = options_.test.min_effect;
      threshold.detect_effect = options_.test.detect_effect;
      return threshold;
    };
  }

  absl::StatusOr<AbResult> Run() {
    Rng rng(options_.seed);
    bool a_first = false;
    AbResult result;
    while (result.rounds < options_.max_rounds) {
      a_first = result.rounds % 2 == 0 ? rng.UniformInt(2) == 0 : !a_first;
      OPTRAIL_RETURN_IF_ERROR(MeasureRound(a_first, result));
      ++result.rounds;
      OPTRAIL_RETURN_IF_ERROR(Judge(result));
      if (!result.candidate_failure.empty() || open_ == 0) break;
    }
    result.base = std::move(a_);
    result.candidate = std::move(b_);
    return result;
  }

 private:
  absl::Status MeasureRound(bool a_first, AbResult& result) {
    absl::StatusOr<ProcessResult> a, b;
    const int round = result.rounds;
    if (a_first) a = measure_(Program::kA, round);
    if (a_first && !a.ok()) return a.status();
    b = measure_(Program::kB, round);
    if (!b.ok()) return b.status();
    if (!a_first) a = measure_(Program::kA, round);
    if (!a.ok()) return a.status();
    if (!a->failure.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "A, the base, ", a->failure, " in round ", round + 1,
          b->failure.empty() ? "" : " (so did B)",
          ": there is nothing to compare with",
          a->stderr_tail.empty()
              ? ""
              : absl::StrCat("; its last words:\n", a->stderr_tail)));
    }
    OPTRAIL_ASSIGN_OR_RETURN(proto::Run base, Parse("A", *a));
    Add(round, base, Program::kA);
    if (!b->failure.empty()) {
      FailCandidate(*b, result);
      return absl::OkStatus();
    }
    OPTRAIL_ASSIGN_OR_RETURN(proto::Run candidate, Parse("B", *b));
    Add(round, candidate, Program::kB);
    const std::map<std::string, double> readings = Readings(base);
    for (const auto& [key, value] : Readings(candidate)) {
      const auto found = readings.find(key);
      if (found != readings.end()) {
        log_ratios_[key].push_back(std::log(value / found->second));
      }
    }
    return absl::OkStatus();
  }

  void Add(int round, proto::Run& run, Program program) {
    for (proto::BenchmarkResult& result : *run.mutable_results()) {
      for (proto::Measurement& measurement : *result.mutable_measurements()) {
        measurement.set_round(round + 1);
      }
    }
    proto::Run& mine = program == Program::kA ? a_ : b_;
    if (mine.results().empty()) {
      mine = run;
    } else {
      AppendProcesses(run, &mine);
    }
  }

  // Whatever the base has, the candidate has failed at.
  void FailCandidate(const ProcessResult& failed, AbResult& result) {
    result.candidate_failure =
        absl::StrCat(failed.failure, " in round ", result.rounds + 1);
    proto::Run all = a_;
    for (proto::BenchmarkResult& benchmark : *all.mutable_results()) {
      benchmark.clear_measurements();
      benchmark.set_outcome(failed.outcome);
      benchmark.set_detail(
          absl::StrCat("the program ", result.candidate_failure));
    }
    if (b_.results().empty()) {
      all.set_run_id("B");
      b_ = all;
    } else {
      AppendProcesses(all, &b_);
    }
  }

  absl::Status Judge(AbResult& result) {
    OPTRAIL_ASSIGN_OR_RETURN(result.comparison,
                             Compare({&a_}, {&b_}, compare_));
    // What the two sides measured in the first round is what is tested; the
    // number of tests stays, whatever comes later.
    if (tests_ == 0) {
      for (const Row& row : result.comparison.rows) {
        tests_ += log_ratios_.count(PriorKey(row.key, row.metric)) > 0;
      }
      test_.false_alarm_rate /= std::max(1, tests_);
    }
    open_ = result.undecided = result.worse = 0;
    int forecast = result.rounds;
    for (Row& row : result.comparison.rows) {
      if (row.baseline.value && row.candidate.value &&
          row.baseline.outcome == proto::OK &&
          row.candidate.outcome == proto::OK &&
          row.verdict != Verdict::kRenamed &&
          row.verdict != Verdict::kNewVersion) {
        forecast = std::max(forecast, JudgeRow(result.rounds, row));
      }
      result.undecided += row.verdict == Verdict::kCannotTell;
      result.worse += InfoOf(row.verdict).worse;
    }
    if (options_.progress != nullptr) {
      options_.progress(result.rounds, std::min(forecast, options_.max_rounds),
                        open_, tests_);
    }
    return absl::OkStatus();
  }

  // Replaces the verdict of unpaired statistics by that of the pairs. Returns
  // the rounds at which it is expected to be clear.
  int JudgeRow(int rounds, Row& row) {
    const auto found = log_ratios_.find(PriorKey(row.key, row.metric));
    const int pairs =
        found == log_ratios_.end() ? 0 : static_cast<int>(found->second.size());
    if (pairs < rounds) {
      row.verdict = Verdict::kCannotTell;
      row.ratio.reset();
      row.processes_needed.reset();
      row.minimum_detectable_effect.reset();
      row.reason = absl::StrCat("measured by both programs in ", pairs, " of ",
                                rounds, " rounds");
      return rounds;
    }
    PairedTestOptions test = test_;
    if (const auto threshold = compare_.threshold(row.name, row.metric)) {
      test.min_effect = threshold->min_effect;
      test.detect_effect = threshold->detect_effect;
    }
    const int needed = JudgePairs(found->second, test, tests_,
                                  kForecastFactor * options_.max_rounds, &row);
    open_ += row.verdict == Verdict::kCannotTell;
    return needed;
  }

  const AbOptions& options_;
  const MeasureFunction& measure_;
  PairedTestOptions test_;  // with each benchmark's share of the rate
  CompareOptions compare_;
  proto::Run a_, b_;
  std::map<std::string, std::vector<double>> log_ratios_;
  int tests_ = 0;
  int open_ = 0;
};

}  // namespace

absl::StatusOr<AbResult> RunRounds(const AbOptions& options,
                                   const MeasureFunction& measure) {
  OPTRAIL_RETURN_IF_ERROR(CheckOptions(options));
  return Rounds(options, measure).Run();
}

}  // namespace optrail::tracker
