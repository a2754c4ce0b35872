#ifndef OPTRAIL_SUITES_COMMAND_COMMANDS_H_
#define OPTRAIL_SUITES_COMMAND_COMMANDS_H_

// The commands that measure, `tune` and `bench`, with their flags: the command
// line offers them for all operators, the targets of the operator macro for
// one.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/exit_code.h"
#include "suites/command/command_line.h"
#include "suites/worker/run_context.h"

namespace optrail::suites {

// `op` fixes the operator (a regular expression that matches its name); empty
// leaves it to --op.
Command TuneCommand(const std::string& op);
Command BenchCommand(const std::string& op);
Command WorkerCommand();

// Tunes what the store lacks of a workload, benchmarks default and tuned
// configs, prints the table and records the run.
struct SuiteResult {
  RunContext context;
  std::string run_id;
  // kCheckFailed where a task was not tuned, else that of the benchmarks.
  ExitCode exit_code = ExitCode::kOk;
};
absl::StatusOr<SuiteResult> RunSuite(const std::string& workload);
std::vector<std::string> SuiteFlags();

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_COMMAND_COMMANDS_H_
