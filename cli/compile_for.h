#ifndef OPTRAIL_CLI_COMPILE_FOR_H_
#define OPTRAIL_CLI_COMPILE_FOR_H_

// Commands that compile kernels share the flag --hw.

#include "absl/status/statusor.h"
#include "ops/core/device_type.h"
#include "suites/worker/run_context.h"

namespace optrail::cli {

// The context of this machine, or one with the hardware that --hw names. Then
// only its hardware and folders are set.
absl::StatusOr<suites::RunContext> ContextToCompileFor(
    const ops::DeviceType& type);

}  // namespace optrail::cli

#endif  // OPTRAIL_CLI_COMPILE_FOR_H_
