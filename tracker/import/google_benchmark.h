#ifndef OPTRAIL_TRACKER_IMPORT_GOOGLE_BENCHMARK_H_
#define OPTRAIL_TRACKER_IMPORT_GOOGLE_BENCHMARK_H_

// The JSON that Google Benchmark writes with --benchmark_format=json or
// --benchmark_out, of any version since 1.0. See tracker/import/import.h.
//
// A file is one process: repetitions are its samples. A benchmark of which
// there are only aggregates (--benchmark_report_aggregates_only) gets their
// median, else their mean, marked aggregate_only. Counters become metrics.

#include "tracker/import/import.h"

namespace optrail::tracker {

// Never destroyed.
const Importer* GoogleBenchmarkImporter();

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_IMPORT_GOOGLE_BENCHMARK_H_
