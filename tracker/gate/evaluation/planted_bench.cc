// Stands in for `optrail bench` and `optrail suite WORKLOAD` where a script is
// judged and no machine (ci/gate_test.sh, ci/nightly_test.sh): four benchmarks
// whose times are noise around a level that drifts from round to round, where
// there are rounds, and is slowed by what the commit says.
//
//   planted_bench bench --benchmark_out=FILE --processes=1
//
// The working directory is a commit's tree; its file `slow` holds a benchmark
// and a factor ("BM_2 1.1") or is absent, its file `noise` what processes vary
// by (".04") if that is not 1%. It takes the flags that scripts pass; it writes
// results as Google Benchmark does, once for each round, or records them.

#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/process/git.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "re2/re2.h"
#include "tracker/history/history.h"
#include "tracker/proto/run.pb.h"

ABSL_FLAG(std::string, workload, "", "the suite");
ABSL_FLAG(std::string, history, "unused", "");
ABSL_FLAG(std::string, store, "", "ignored");
ABSL_FLAG(std::string, report, "", "ignored");
ABSL_FLAG(std::string, benchmark_out, "", "");
ABSL_FLAG(int, processes, 5, "");
ABSL_FLAG(std::string, benchmark_filter, "", "");
ABSL_FLAG(bool, record, false, "ignored: it always does");
ABSL_FLAG(bool, quiet, false, "ignored");
ABSL_FLAG(bool, benchmark_list_tests, false, "measures nothing");

namespace optrail::tracker {
namespace {

constexpr int kBenchmarks = 4;
constexpr int kSamples = 9;
constexpr double kNoise = .01;
constexpr double kDrift = .15;  // far more than what is to be found

// The drift of both sides of a round.
double DriftOf(int round) { return kDrift * std::sin(1.7 * round); }

// The contents of a commit's tree.
struct Plan {
  std::string slow_name;
  double factor = 1;
  double noise = kNoise;
};

absl::StatusOr<Plan> ReadPlan() {
  Plan plan;
  if (const auto text = ReadFile("slow"); text.ok()) {
    const std::vector<std::string> words =
        absl::StrSplit(*text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
    if (words.size() != 2 || !absl::SimpleAtod(words[1], &plan.factor)) {
      return absl::InvalidArgumentError(
          absl::StrCat("slow: '", *text, "', expected a name and a factor"));
    }
    plan.slow_name = words[0];
  }
  if (const auto text = ReadFile("noise"); text.ok()) {
    if (!absl::SimpleAtod(*text, &plan.noise)) {
      return absl::InvalidArgumentError(
          absl::StrCat("noise: '", *text, "', expected a number"));
    }
  }
  return plan;
}

// Turns of this tree before, counted in a file.
absl::StatusOr<int> CountTurn() {
  const std::string path = ".optrail/turns";
  const auto before = ReadFile(path);
  const std::string turns = absl::StrCat(before.ok() ? *before : "", ".");
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(".optrail"));
  OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(path, turns));
  return static_cast<int>(turns.size());
}

absl::Status WriteAsGoogleBenchmark(const proto::Run& run) {
  nlohmann::json json = {{"context", {{"executable", "./planted"}}},
                         {"benchmarks", nlohmann::json::array()}};
  for (const proto::BenchmarkResult& result : run.results()) {
    for (const proto::Measurement& measurement : result.measurements()) {
      for (const int64_t ns : measurement.sample_ns()) {
        json["benchmarks"].push_back({{"name", result.key().operator_name()},
                                      {"run_type", "iteration"},
                                      {"iterations", 1},
                                      {"real_time", ns},
                                      {"time_unit", "ns"}});
      }
    }
  }
  return WriteFileAtomically(absl::GetFlag(FLAGS_benchmark_out), json.dump());
}

absl::Status Measure(const std::string& suite) {
  OPTRAIL_ASSIGN_OR_RETURN(const GitFacts facts, FindGitFacts("."));
  OPTRAIL_ASSIGN_OR_RETURN(const Plan plan, ReadPlan());
  OPTRAIL_ASSIGN_OR_RETURN(const History history,
                           History::Open(absl::GetFlag(FLAGS_history)));
  // Runs in turn differ by their round, others by what was recorded before.
  const bool in_turn = !absl::GetFlag(FLAGS_benchmark_out).empty();
  int round = 0;
  if (in_turn) {
    OPTRAIL_ASSIGN_OR_RETURN(round, CountTurn());
  } else {
    OPTRAIL_ASSIGN_OR_RETURN(const RunList before, history.ListRuns());
    round = static_cast<int>(before.runs.size());
  }
  Rng rng(StableHash(absl::StrCat(facts.commit, "/", round)));
  proto::Run run;
  run.set_started_unix_ns(Clock::Real()->WallNs());
  run.set_run_id(NewRecordId(run.started_unix_ns()));
  run.set_suite(suite);
  run.set_source("optrail");
  run.mutable_commit()->set_id(facts.commit);
  run.mutable_commit()->set_dirty(facts.dirty);
  run.mutable_commit()->set_branch(facts.branch);
  if (facts.first_parent_position.has_value()) {
    run.mutable_commit()->set_first_parent_position(
        *facts.first_parent_position);
  }
  run.mutable_hardware()->set_id("planted");
  const RE2 filter(absl::GetFlag(FLAGS_benchmark_filter));
  for (int j = 0; j < kBenchmarks; ++j) {
    const std::string name = absl::StrCat("BM_", j);
    if (!RE2::PartialMatch(name, filter)) continue;
    proto::BenchmarkResult* result = run.add_results();
    result->mutable_key()->set_operator_name(name);
    result->set_outcome(proto::OK);
    for (int p = 0; p < absl::GetFlag(FLAGS_processes); ++p) {
      proto::Measurement* measurement = result->add_measurements();
      measurement->set_calls_per_sample(1);
      const double level = std::log(1e5 * (j + 1)) +
                           (in_turn ? DriftOf(round) : 0) +
                           plan.noise * rng.Gaussian() +
                           (name == plan.slow_name ? std::log(plan.factor) : 0);
      for (int i = 0; i < kSamples; ++i) {
        measurement->add_sample_ns(std::llround(
            std::exp(level + .1 * plan.noise * std::abs(rng.Gaussian()))));
      }
    }
  }
  return in_turn ? WriteAsGoogleBenchmark(run) : history.AppendRun(run);
}

}  // namespace
}  // namespace optrail::tracker

int main(int argc, char** argv) {
  // "planted_bench", "suite", "smoke"
  const std::vector<char*> words = absl::ParseCommandLine(argc, argv);
  if (absl::GetFlag(FLAGS_benchmark_list_tests)) return 0;
  const absl::Status done = optrail::tracker::Measure(
      words.size() > 2 ? words[2] : absl::GetFlag(FLAGS_workload));
  if (done.ok()) return 0;
  std::cerr << "error: " << done.message() << "\n";
  return 2;
}
