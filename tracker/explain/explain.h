#ifndef OPTRAIL_TRACKER_EXPLAIN_EXPLAIN_H_
#define OPTRAIL_TRACKER_EXPLAIN_EXPLAIN_H_

// Explains a regression by what the records of both sides hold: a short diff
// of what changed with it, for `gate`, `changes` and the report.
//
//   Explainer explainer(history);
//   for (const std::string& line : explainer.Lines(
//            {key, "20261120T090807Z-1a2b3c4d5e6f",
//             "20261121T090807Z-5e6f7a8b9c0d", /*ratio=*/1.31})) {
//     out << "  " << line << "\n";
//   }
//
// prints, the likeliest cause first,
//
//   config: tile 64 -> 32
//   kernel: its code changed (id 1a2b3c4d -> 5e6f7a8b)
//   share of the roofline: 62% -> 47%
//   diagnosis: memory > extra_passes (40%) -> compute > spills (31%)
//
// It is evidence, no proof: what changed at the same time need not be the
// cause. Causes whose effect can be computed (clocks, waiting for a core) come
// first where they account for half of the change, and last or not at all where
// they don't. Records hold no compiled code; of configs that a tuning session
// compiled they hold what compiling told (registers, spills, sizes), and of
// kernels that were diagnosed the causes. Where both sides were built to be
// compared, the caller adds how their code differs.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "tracker/history/history.h"
#include "tracker/history/run_results.h"
#include "tracker/proto/diagnosis.pb.h"
#include "tracker/proto/run.pb.h"
#include "tuning/proto/session.pb.h"

namespace optrail::tracker {

// One side: a result, its run, whose other results may be absent, and what
// compiling its config told, if known.
struct Recorded {
  const proto::Run* run = nullptr;
  const proto::BenchmarkResult* result = nullptr;
  std::vector<proto::Fact> facts;
  // The record of `optrail diagnose` of this kernel and config; may be null.
  const proto::Diagnosis* diagnosis = nullptr;
};

// `benchmark` is the canonical text of its key. Returns null where the run
// lacks it, else what lives as long as `run`.
const proto::BenchmarkResult* FindResult(const proto::Run& run,
                                         const std::string& benchmark);

// `time_ratio` is how much longer it takes: 1.3 for 30%. `code` has the lines
// of code_difference.h, where both sides were built. Never empty: where nothing
// differs, the one line says so and names the commits.
std::vector<std::string> WhatChanged(const Recorded& before,
                                     const Recorded& after, double time_ratio,
                                     const std::vector<std::string>& code = {});

// "tile 64 -> 32, unroll 1 -> 2": the knobs of two canonical texts of configs
// that differ, at most twelve; "" for none, and both whole if one is empty.
std::string ConfigDifference(const std::string& before,
                             const std::string& after);

// The two runs whose results of a benchmark are compared.
struct Regression {
  proto::BenchmarkKey key;
  std::string run_before;
  std::string run_after;
  double time_ratio = 1;
};

// Reads the runs, parsing the results that it explains and no others, and their
// sessions. Not thread-safe.
class Explainer {
 public:
  // `history` must outlive it.
  explicit Explainer(const History& history) : history_(history) {}

  // Says in one line why, if a record can't be read.
  std::vector<std::string> Lines(const Regression& regression);

 private:
  // Forgets runs before their bytes fill the memory.
  void MakeRoom();
  // Null if there is none that can be read.
  RunResults* Run(const std::string& id);
  const proto::Session* Session(const std::string& id);
  // The newest of the result's very kernel and config; null if there is none.
  const proto::Diagnosis* DiagnosisOf(const proto::Run& run,
                                      const proto::BenchmarkResult& result);

  const History& history_;
  std::map<std::string, std::unique_ptr<RunResults>> runs_;
  int64_t run_bytes_ = 0;  // of all runs_
  std::map<std::string, absl::StatusOr<proto::Session>> sessions_;
  absl::optional<std::vector<proto::Diagnosis>> diagnoses_;  // once read
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_EXPLAIN_EXPLAIN_H_
