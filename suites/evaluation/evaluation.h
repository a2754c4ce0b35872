#ifndef OPTRAIL_SUITES_EVALUATION_EVALUATION_H_
#define OPTRAIL_SUITES_EVALUATION_EVALUATION_H_

// Helpers that the programs of this folder share.

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/exit_code.h"
#include "suites/worker/run_context.h"

namespace optrail::suites {

// The `main` of an evaluation: a worker where it was started as one, else the
// flags and `run`. An error goes to standard error and is kBadInput.
int EvaluationMain(int argc, char** argv,
                   absl::FunctionRef<absl::StatusOr<ExitCode>()> run);

// A context with history, store and state in `folder`, apart from those that
// people work with.
absl::StatusOr<RunContext> ContextIn(const std::string& folder,
                                     proto::DeviceKind device);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_EVALUATION_EVALUATION_H_
