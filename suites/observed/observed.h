#ifndef OPTRAIL_SUITES_OBSERVED_OBSERVED_H_
#define OPTRAIL_SUITES_OBSERVED_OBSERVED_H_

// What programs call, as liboptrail counted it: a weighted workload to tune,
// and how much of it the store covers. `optrail observe` and `optrail coverage`
// are these functions.
//
//   ObserveCommand command;
//   command.files = {"/var/lib/service/calls"};
//   command.out = "service.workload.textproto";
//   return RunObserve(command, std::cout, std::cerr);
//
// Results go to `out`, what was left out and what to do next to `notes`.
// Errors: as tuning::ReadObservedFiles(); NotFound where nothing matches.

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/text/table.h"
#include "suites/worker/run_context.h"
#include "tuning/observed/observed_file.h"

namespace optrail::suites {

struct ObserveCommand {
  std::vector<std::string> files;  // or folders
  std::string op_regex;            // matches the whole name; empty: every one
  // A workload has one device and one number of threads. "" and 0: those of
  // most calls.
  std::string device;
  int threads = 0;
  // Where the workload is written, which gets the file's name; empty: nowhere.
  std::string out;
  OutputFormat format = OutputFormat::kTable;
};
absl::StatusOr<int> RunObserve(const ObserveCommand& command, std::ostream& out,
                               std::ostream& notes);

struct CoverageCommand {
  std::vector<std::string> files;
  std::string op_regex;
  RunContext context;  // whose hardware and store answer
  OutputFormat format = OutputFormat::kTable;
};
// Calls on other hardware than the context's are left out; exit code 3 where
// there are no others.
absl::StatusOr<int> RunCoverage(const CoverageCommand& command,
                                std::ostream& out, std::ostream& notes);

// One problem, however its lookups ended.
struct ObservedShape {
  tuning::ObservedKey key;  // without the source
  int64_t calls = 0;
  int64_t by_source[tuning::kObservedSources] = {};
  double ns = 0;  // of timed_calls
  int64_t timed_calls = 0;

  // The time of all calls; 0 where none was timed.
  double TotalNs() const {
    return timed_calls == 0 ? 0
                            : ns / static_cast<double>(timed_calls) *
                                  static_cast<double>(calls);
  }
};

// Those of the operators that `op_regex` matches ("": all), most calls first.
// Never empty: NotFound says what there is. `notes`, unless null, gets a line
// for each file that could be read in part alone.
absl::StatusOr<std::vector<ObservedShape>> ReadObservedShapes(
    const std::vector<std::string>& files, const std::string& op_regex,
    std::ostream* notes = nullptr);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_OBSERVED_OBSERVED_H_
