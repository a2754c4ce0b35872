#ifndef OPTRAIL_SUITES_COMMAND_COMMAND_FLAGS_H_
#define OPTRAIL_SUITES_COMMAND_COMMAND_FLAGS_H_

// The flags of `tune`, `bench` and `suite`, and what their drivers make of
// them. InvalidArgument names the flag, its value and what was expected.

#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/text/table.h"
#include "suites/bench/bench_driver.h"
#include "suites/tune/elsewhere.h"
#include "suites/tune/tune_driver.h"
#include "suites/worker/run_context.h"
#include "suites/workload/tasks.h"

ABSL_DECLARE_FLAG(optrail::OutputFormat, format);
ABSL_DECLARE_FLAG(std::string, workload);
ABSL_DECLARE_FLAG(bool, record);
ABSL_DECLARE_FLAG(std::string, history);
ABSL_DECLARE_FLAG(std::string, store);
ABSL_DECLARE_FLAG(std::string, shape);
ABSL_DECLARE_FLAG(std::string, objective);
ABSL_DECLARE_FLAG(std::string, preset);
ABSL_DECLARE_FLAG(bool, dry_run);

namespace optrail::suites {

// Names of flags, by what they are for.
std::vector<std::string> SelectionFlags();
std::vector<std::string> TuneFlags();
std::vector<std::string> BenchFlags();
std::vector<std::string> PlaceFlags();

// --workload; an empty one without it.
absl::StatusOr<proto::Workload> WorkloadFromFlags();

// `op` fixes the operator; empty leaves it to --op.
absl::StatusOr<TaskSelection> SelectionFromFlags(const std::string& op,
                                                 const std::string& workload);

// What the command line leaves open, the workload says. Objectives other than
// time are checked against the meters of the device, which is opened for that;
// where it may not be, whatever its meters could read is taken.
absl::StatusOr<TuneDriverOptions> TuneFromFlags(const proto::Workload& workload,
                                                bool may_open_device = true);
absl::StatusOr<BenchDriverOptions> BenchFromFlags(
    const proto::Workload& workload, const std::string& op);

// Divides --time_budget: half of it for the search, a third for the proof of
// the winner; ranking the finalists takes the rest. A ranking that would take
// longer is cut after its first round, a proof after the fewest rounds that may
// decide. If the proof has a time of its own (--proof_time), all of the budget
// is for the search.
void DivideTimeBudget(absl::Duration whole, proto::Budget* budget,
                      tuning::ProofOptions* proof);

// The options and the address with which `worker` serves.
absl::StatusOr<ServeOptions> ServeFromFlags();

// --history and --store, as RunContext resolves them.
absl::StatusOr<RunContext> RunContextFromFlags();

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_COMMAND_COMMAND_FLAGS_H_
