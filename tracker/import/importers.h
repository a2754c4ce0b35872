#ifndef OPTRAIL_TRACKER_IMPORT_IMPORTERS_H_
#define OPTRAIL_TRACKER_IMPORT_IMPORTERS_H_

// The formats that import.h reads: one Importer each, one file each. What all
// have in common (the run around the results, the id of the hardware) is
// import.cc's.

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tracker/import/collected.h"
#include "tracker/import/import.h"
#include "tracker/proto/run.pb.h"

namespace optrail::tracker {

struct Importer {
  const char* format;

  // Returns whether `content` looks like this format; cheap.
  bool (*recognises)(absl::string_view content);

  // Reads the benchmarks of one file, with one Measurement per process and
  // benchmark, and what the file says of suite, start, hardware, toolchain and
  // commit. InvalidArgument names file, benchmark or line and field, what was
  // found and what was expected.
  absl::Status (*read)(const ImportedFile& file, CollectedResults& results,
                       proto::Run& run);
};

// The JSON that Google Benchmark writes with --benchmark_format=json or
// --benchmark_out, of any version since 1.0.
//
// A file is one process: repetitions are its samples. A benchmark of which
// there are only aggregates (--benchmark_report_aggregates_only) gets their
// median, else their mean, marked aggregate_only. Counters become metrics.
extern const Importer kGoogleBenchmark;

// The JSON of pytest-benchmark (--benchmark-json, --benchmark-autosave), of any
// version since 3.0.
//
// A file is one process: rounds are its samples, named by the test's full name
// ("tests/test_sort.py::test_sort[1000]"). A file saved without its data gives
// the median, marked aggregate_only. Numbers of extra_info become metrics. The
// commit and branch that it names are the run's unless others are given.
extern const Importer kPytestBenchmark;

// The JSON of `hyperfine --export-json`, of any version since 1.0.
//
// A command is a benchmark, named as hyperfine names it. Each of its runs is a
// process of its own and so evidence of its own. Runs that ended with another
// exit code than 0 (--ignore-failure) are labelled; a command that was killed
// by a signal has crashed.
extern const Importer kHyperfine;

// The text of `go test -bench`, of any Go, with -count, -benchmem, -cpu, -v and
// metrics of b.ReportMetric.
//
// A package is one process: what -count repeats are its samples. A benchmark is
// named "PACKAGE.BenchmarkName-PROCS", all as Go prints it; "ns/op" is its time
// and every other unit a metric of that name. One that failed or panicked has
// crashed, one that was skipped is unsupported. A package that did not build is
// an error: what it would have measured is not known.
extern const Importer kGoBench;

// The JSON of NVBench (--json), version 1 of its format, and the samples beside
// it (--jsonbin). Without them a state's mean is the one sample of its process.
//
// A file is one process. A state is a benchmark: "copy[Elements=2^20 T=I32]".
// The time is that of the GPU, else of the CPU. A state that was skipped is
// unsupported.
extern const Importer kNvbench;

// The output of Criterion.rs: the messages of `cargo criterion
// --message-format=json`, or the raw.csv of one benchmark.
//
// A file is one process. Values in another unit than a time's are a metric of
// that name.
extern const Importer kCriterion;

// The XML of Catch2, versions 2 and 3 (--reporter xml).
//
// A file is one process, whose one sample is the mean: Catch2 writes no
// samples. A benchmark is named "TEST CASE/SECTION/BENCHMARK".
extern const Importer kCatch2;

// The JSON of JMH (-rf json).
//
// A fork is a process, an iteration a sample. A benchmark is named
// "CLASS.METHOD:PARAM=VALUE/MODE". Rates (mode thrpt) are the metric
// "throughput" in 1/s, whatever unit of time the file has.
extern const Importer kJmh;

// The JSON of BenchmarkDotNet (--exporters json, fulljson or briefjson).
//
// A launch is a process; in a brief report all of them are one. A benchmark
// without statistics has crashed.
extern const Importer kBenchmarkDotNet;

// A file of results of asv (.asv/results/MACHINE/COMMIT-ENVIRONMENT.json),
// version 2.
//
// Samples (`asv run --record-samples`) are of one process, as asv does not say
// which of its processes each is of; without them there is a median, marked
// aggregate_only. The name tells what a value is: time_*, timeraw_*, mem_* and
// peakmem_*; any other is the metric "value". The commit is the one that the
// file names.
extern const Importer kAsv;

// Bencher Metric Format: {"BENCHMARK": {"MEASURE": {"value": 1.5}}}.
//
// A file is one process, and a value its one sample: "latency" is the time in
// ns, "throughput" a rate, and any other measure a metric of that name.
extern const Importer kBencher;

// Plain CSV, for programs that have no format of their own.
//
//   name,value,unit
//   parse/small,12.5,us
//   parse/large,3.25,ms
//   startup,18.5,MB
//
// The columns are name, value and, if wanted, unit and metric, in any order;
// without a header they are name, value and unit. A unit of ns, us, ms or s
// makes the value a time; no unit means ns. With any other unit it is the
// metric that `metric` or else the unit names. Names may be quoted as RFC 4180
// says. Rows of one name are samples of one process. Empty lines and those that
// begin with # are skipped.
extern const Importer kNameValueCsv;

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_IMPORT_IMPORTERS_H_
