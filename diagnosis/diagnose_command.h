#ifndef OPTRAIL_DIAGNOSIS_DIAGNOSE_COMMAND_H_
#define OPTRAIL_DIAGNOSIS_DIAGNOSE_COMMAND_H_

// `optrail diagnose` as a function, for the command line to fill from flags.

#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "suites/bench/bench_driver.h"
#include "suites/tune/tune_driver.h"
#include "suites/worker/run_context.h"
#include "suites/workload/tasks.h"
#include "tracker/command/command_support.h"

namespace optrail::diagnosis {

struct DiagnoseCommand {
  tracker::CommonOptions common;
  std::vector<suites::TaskEntry> tasks;
  suites::RunContext context;
  // Which config of each task, and the workers that measure it.
  suites::BenchDriverOptions bench;
  // How --try searches.
  suites::TuneDriverOptions tune;
  std::string workload;  // empty: none
  // So many tasks are diagnosed: those whose calls take the most time above the
  // machine's ceilings.
  int slowest = 5;
  bool try_advice = false;
  bool record = true;
  bool quiet = false;
};

// 0: diagnosed. InvalidArgument or NotFound for wrong use, and where no task
// could be measured, the first reason.
absl::StatusOr<int> RunDiagnose(const DiagnoseCommand& options,
                                std::ostream& out);

// `optrail diagnose --calibration`: 3 where nothing was tried yet.
absl::StatusOr<int> RunCalibration(const tracker::CommonOptions& options,
                                   std::ostream& out);

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_DIAGNOSE_COMMAND_H_
