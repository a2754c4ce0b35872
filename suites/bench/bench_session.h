#ifndef OPTRAIL_SUITES_BENCH_BENCH_SESSION_H_
#define OPTRAIL_SUITES_BENCH_BENCH_SESSION_H_

// RunBenchSession measures benchmarks in rounds: in each round every benchmark
// gets one fresh process, so that a change of the machine's mood during the
// session hits all benchmarks alike, and neighbours in the list (default and
// tuned config of one task) are read close together. If the policy of
// the device interleaves rounds, those of one operator and shape, backends too,
// share a process a round. Afterwards processes whose
// core was slow, as calibration loops beside them say (ops/device/cpu/
// calibration.h), are measured again: a neighbour on the core's other hardware
// thread often stays for longer than a process, and code takes 20% more there.
// That is told by what the machine did, never by what the code took.
//
//   const std::vector<proto::BenchmarkResult> results =
//       RunBenchSession(cases, options, MakeWorker);

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "suites/bench/bench_journal.h"
#include "suites/proto/worker.pb.h"
#include "suites/worker/evaluator.h"
#include "tracker/proto/run.pb.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::suites {

// How often a process that was disturbed is tried, in all. Processes on slow
// cores are repeated too: at most as many as the session has.
inline constexpr int kBenchAttempts = 3;

// A process that was disturbed from beginning to end is evidence where as many
// of its samples are known without their waiting for a core.
inline constexpr int kSamplesOfContended = 7;

// Longer than tuning samples: a neighbour that comes and goes within
// milliseconds leaves some of the samples alone.
proto::SamplingOptions BenchSamplingOptions();

struct BenchCase {
  proto::Task task;
  proto::Config config;
  // Key and attributes, filled in but for outcome and measurements.
  proto::BenchmarkResult result;
  bool has_choice = true;  // as TaskSpace says
  // Why another config than the task's own tuned one runs, if so.
  std::string substituted;
};

struct BenchOptions {
  int processes = 5;
  proto::SamplingOptions sampling;
  // To be metered beside time, where the device can.
  std::vector<std::string> metrics;
  // How often and how long each process meters each metric, at least
  // (EvaluationOptions).
  int meter_windows = 1;
  absl::Duration meter_window = absl::ZeroDuration();
  bool zero_inputs = false;
  // Rounds run the cases in an order of their own, drawn from the seed.
  bool random_interleaving = false;
  uint64_t seed = 1;
  // Before each process: its number from 1, of how many, and which. Those that
  // are measured again come on top.
  std::function<void(int done, int total, const std::string& name)> on_progress;
  // Where not null, holds what was measured before an interruption, which is
  // not measured again, and keeps what is. The rounds alone: slow cores are
  // looked for when they are through.
  BenchJournal* journal = nullptr;
  // Of the run, at the first process that is measured now.
  int64_t elapsed_ns = 0;
};

using EvaluatorFactory =
    std::function<std::unique_ptr<Evaluator>(const proto::Task&)>;

// One result per case, in their order. The outcome is that of the first process
// that was neither OK nor CONTENDED, and then no further process is started for
// the case; CONTENDED if fewer than half of the processes tell anything.
std::vector<proto::BenchmarkResult> RunBenchSession(
    const std::vector<BenchCase>& cases, const BenchOptions& options,
    const EvaluatorFactory& make_evaluator);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_BENCH_BENCH_SESSION_H_
