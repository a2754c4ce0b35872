#ifndef OPTRAIL_TRACKER_COMPARE_COMPARE_TEST_FIXTURE_H_
#define OPTRAIL_TRACKER_COMPARE_COMPARE_TEST_FIXTURE_H_

// Runs of benchmarks with a time for each process, and their comparison.
//
//   proto::Run a, b;
//   AddProcesses(a, "sort", {100, 101, 99});
//   AddProcesses(b, "sort", {120, 121, 119});
//   EXPECT_EQ(RowOf(CompareRuns(a, b), "sort").verdict, Verdict::kSlower);

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "tracker/compare/compare.h"

namespace optrail::tracker {

inline proto::BenchmarkResult* AddResult(proto::Run& run,
                                         const std::string& name) {
  proto::BenchmarkResult* result = run.add_results();
  result->mutable_key()->set_operator_name(name);
  result->set_outcome(proto::OK);
  return result;
}

inline void AddProcesses(proto::Run& run, const std::string& name,
                         const std::vector<double>& process_ns) {
  proto::BenchmarkResult* result = AddResult(run, name);
  for (const double ns : process_ns) {
    result->add_measurements()->set_median_ns(ns);
  }
}

inline std::vector<double> Lognormal(int n, double median_ns, double spread,
                                     Rng& rng) {
  std::vector<double> values;
  for (int i = 0; i < n; ++i) {
    values.push_back(median_ns * std::exp(spread * rng.Gaussian()));
  }
  return values;
}

inline const Row& RowOf(const Comparison& comparison, const std::string& name) {
  for (const Row& row : comparison.rows) {
    if (row.name == name) return row;
  }
  ADD_FAILURE() << "no row " << name;
  static const Row none;
  return none;
}

inline Comparison CompareRuns(const proto::Run& a, const proto::Run& b,
                              const CompareOptions& options = {}) {
  absl::StatusOr<Comparison> comparison = Compare({&a}, {&b}, options);
  EXPECT_TRUE(comparison.ok()) << comparison.status();
  return *std::move(comparison);
}

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_COMPARE_TEST_FIXTURE_H_
