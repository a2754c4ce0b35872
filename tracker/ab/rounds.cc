#include "tracker/ab/rounds.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "tracker/import/import.h"

namespace optrail::tracker {
namespace {

absl::Status CheckOptions(const AbOptions& options) {
  const CompareOptions& compare = options.compare;
  const Threshold& effects = compare.effects;
  const auto wrong = [](absl::string_view field, double value,
                        absl::string_view expected) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is ", value, ", expected ", expected));
  };
  if (!(compare.false_alarm_rate > 0 && compare.false_alarm_rate < .5)) {
    return wrong("false_alarm_rate", compare.false_alarm_rate,
                 "more than 0 and less than 0.5");
  }
  if (!(effects.min_effect >= 0 && effects.min_effect < 10)) {
    return wrong("min_effect", effects.min_effect, "0 to 10");
  }
  if (!(effects.detect_effect > 0 && effects.detect_effect < 10)) {
    return wrong("detect_effect", effects.detect_effect,
                 "more than 0, up to 10");
  }
  if (effects.min_effect > effects.detect_effect) {
    return absl::InvalidArgumentError(
        absl::StrCat("min_effect is ", effects.min_effect,
                     " and detect_effect ", effects.detect_effect,
                     ": expected min_effect to be at most the other"));
  }
  if (options.max_rounds < compare.min_rounds) {
    return wrong("max_rounds", options.max_rounds,
                 absl::StrCat("at least ", compare.min_rounds));
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
  return std::move(runs[0]);
}

// Returns the error for a base that failed; `also` says what failed beside it.
absl::Status BaseFailed(const ProcessResult& base, int round,
                        absl::string_view also) {
  return absl::FailedPreconditionError(absl::StrCat(
      "A, the base, ", base.failure, " in round ", round + 1, also,
      ": there is nothing to compare with",
      base.stderr_tail.empty()
          ? ""
          : absl::StrCat("; its last words:\n", base.stderr_tail)));
}

class Rounds {
 public:
  Rounds(const AbOptions& options, const MeasureFunction& measure)
      : options_(options), measure_(measure) {}

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
      return BaseFailed(*a, round, b->failure.empty() ? "" : " (so did B)");
    }
    OPTRAIL_ASSIGN_OR_RETURN(proto::Run base, Parse("A", *a));
    Add(round, base, Program::kA);
    if (!b->failure.empty()) {
      FailCandidate(*b, result);
      return absl::OkStatus();
    }
    OPTRAIL_ASSIGN_OR_RETURN(proto::Run candidate, Parse("B", *b));
    Add(round, candidate, Program::kB);
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
      // Until the runs are recorded, under an id that others do not have.
      mine.set_pairing_id("rounds");
      mine.set_started_unix_ns(program == Program::kA ? 1 : 2);
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
      all.set_started_unix_ns(2);
      b_ = all;
    } else {
      AppendProcesses(all, &b_);
    }
  }

  absl::Status Judge(AbResult& result) {
    OPTRAIL_ASSIGN_OR_RETURN(result.comparison,
                             Compare({&a_}, {&b_}, options_.compare));
    result.undecided = result.worse = 0;
    int compared = 0;
    std::set<std::string> open;
    int forecast = result.rounds, open_rows = 0;
    for (const Row& row : result.comparison.rows) {
      result.undecided += row.verdict == Verdict::kCannotTell;
      result.worse += InfoOf(row.verdict).worse;
      if (!IsCompared(row)) continue;
      ++compared;
      // A renamed one is judged as any other once there is enough of it.
      const bool waits = row.verdict == Verdict::kRenamed &&
                         result.rounds < options_.compare.min_processes;
      if (row.verdict != Verdict::kCannotTell && !waits) continue;
      // What one side lacks in some rounds keeps nothing waiting.
      if (result.rounds >= options_.compare.min_processes &&
          row.rounds < result.rounds) {
        continue;
      }
      open.insert(row.name);
      if (!row.renamed_from.empty()) open.insert(row.renamed_from);
      ++open_rows;
      forecast = std::max(forecast,
                          row.processes_needed.value_or(options_.max_rounds));
    }
    open_ = open_rows;
    if (options_.progress != nullptr) {
      options_.progress(result.rounds, std::min(forecast, options_.max_rounds),
                        open_, compared);
    }
    if (options_.narrow != nullptr && !open.empty()) options_.narrow(open);
    return absl::OkStatus();
  }

  // Returns whether both sides measured it.
  static bool IsCompared(const Row& row) {
    return row.baseline.value && row.candidate.value &&
           row.baseline.outcome == proto::OK &&
           row.candidate.outcome == proto::OK &&
           row.verdict != Verdict::kNewVersion;
  }

  const AbOptions& options_;
  const MeasureFunction& measure_;
  proto::Run a_, b_;
  int open_ = 0;
};

}  // namespace

absl::StatusOr<proto::Run> MeasureOnce(const MeasureFunction& measure) {
  OPTRAIL_ASSIGN_OR_RETURN(const ProcessResult result,
                           measure(Program::kA, /*round=*/0));
  if (!result.failure.empty()) return BaseFailed(result, /*round=*/0, "");
  return Parse("A", result);
}

absl::StatusOr<AbResult> RunRounds(const AbOptions& options,
                                   const MeasureFunction& measure) {
  OPTRAIL_RETURN_IF_ERROR(CheckOptions(options));
  return Rounds(options, measure).Run();
}

}  // namespace optrail::tracker
