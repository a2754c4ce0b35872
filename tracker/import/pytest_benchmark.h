#ifndef OPTRAIL_TRACKER_IMPORT_PYTEST_BENCHMARK_H_
#define OPTRAIL_TRACKER_IMPORT_PYTEST_BENCHMARK_H_

// The JSON of pytest-benchmark (--benchmark-json, --benchmark-autosave), of any
// version since 3.0. See tracker/import/import.h.
//
// A file is one process: rounds are its samples, named by the test's full name
// ("tests/test_sort.py::test_sort[1000]"). A file saved without its data gives
// the median, marked aggregate_only. Numbers of extra_info become metrics. The
// commit and branch that it names are the run's unless others are given.

#include "tracker/import/import.h"

namespace optrail::tracker {

// Never destroyed.
const Importer* PytestBenchmarkImporter();

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_IMPORT_PYTEST_BENCHMARK_H_
