#ifndef OPTRAIL_SUITES_BENCH_GOOGLE_BENCHMARK_FACE_H_
#define OPTRAIL_SUITES_BENCH_GOOGLE_BENCHMARK_FACE_H_

// Google Benchmark is the face of the stopwatch: its flags, its console table,
// its JSON. The measurements are ours (fresh processes, reference-checked,
// disturbed samples left out); its reporters print them.
//
// Its flags mean this here:
//   --benchmark_filter, _list_tests, _format, _out, _out_format, _color,
//   _counters_tabular, _context, _time_unit, _report_aggregates_only,
//   _display_aggregates_only, _enable_random_interleaving: as documented there.
//   --benchmark_repetitions: fresh processes per benchmark. (A repetition there
//     is another loop in the same process, which is no independent evidence.)
//   --benchmark_min_time: least time of sampling in each process.
//   --benchmark_perf_counters: refused, with the reason.
//
// Without --benchmark_repetitions the console shows one line per benchmark, the
// median over processes; JSON and CSV always hold every process.

#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tracker/proto/run.pb.h"

namespace optrail::suites {

// The names of the flags above, for a Command.
std::vector<std::string> GoogleBenchmarkFlags();

// InvalidArgument names the flag, its value and what was expected.
absl::Status CheckGoogleBenchmarkFlags();

// --benchmark_filter over the names of benchmarks: RE2 where Google Benchmark
// has its own choice of engine; a leading "-" inverts it, "all" and "" match.
bool MatchesBenchmarkFilter(absl::string_view name);

bool BenchmarkListTests();

// True if standard output gets the table for people.
bool BenchmarkFormatIsConsole();
bool BenchmarkRandomInterleaving();
// 0 if the flag was not given.
int BenchmarkRepetitions();
double BenchmarkMinTimeSeconds();

// The operator's benchmark as people and --benchmark_filter name it.
std::string BenchmarkNameOf(const proto::BenchmarkResult& result);

// Prints `run` to `out` as the flags say, and to --benchmark_out. The latter
// replaces the file atomically.
absl::Status ReportToGoogleBenchmark(const proto::Run& run, std::ostream& out);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_BENCH_GOOGLE_BENCHMARK_FACE_H_
