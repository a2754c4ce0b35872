#ifndef OPTRAIL_TRACKER_IMPORT_GO_BENCH_H_
#define OPTRAIL_TRACKER_IMPORT_GO_BENCH_H_

// The text of `go test -bench`, of any Go, with -count, -benchmem, -cpu, -v and
// metrics of b.ReportMetric. See tracker/import/import.h.
//
// A package is one process: what -count repeats are its samples. A benchmark is
// named "PACKAGE.BenchmarkName-PROCS", all as Go prints it; "ns/op" is its time
// and every other unit a metric of that name. One that failed or panicked has
// crashed, one that was skipped is unsupported. A package that did not build is
// an error: what it would have measured is not known.

#include "tracker/import/import.h"

namespace optrail::tracker {

// Never destroyed.
const Importer* GoBenchImporter();

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_IMPORT_GO_BENCH_H_
