#ifndef OPTRAIL_SUITES_BENCH_SUMMARY_ROWS_H_
#define OPTRAIL_SUITES_BENCH_SUMMARY_ROWS_H_

// Chooses the rows that `bench` shows to people. Programs get every result.
//
//   for (const SummaryRow& row : SummaryRows(run)) Show(*row.result,
//   row.label);

#include <string>
#include <vector>

#include "tracker/proto/run.pb.h"

namespace optrail::suites {

struct SummaryRow {
  const proto::BenchmarkResult* result;
  std::string label;  // about a result that has no row of its own
};

// Leaves out a tuned config that is the default, whose row is labelled, and a
// backend that this machine lacks beside one that it has: the note below the
// table names those (backend_comparison.h). `run` must outlive the rows.
std::vector<SummaryRow> SummaryRows(const proto::Run& run);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_BENCH_SUMMARY_ROWS_H_
