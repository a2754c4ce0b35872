#ifndef OPTRAIL_OPS_HALIDE_HALIDE_CODE_H_
#define OPTRAIL_OPS_HALIDE_HALIDE_CODE_H_

// Code that Halide compiled, as an Invocation. It brings what such code calls:
// threads, memory, errors. Memory for what a call keeps to itself is not the
// caller's workspace: such code asks for it while it runs, and threads find
// again what they gave back.

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/core/invocation.h"
#include "ops/core/operator.h"

namespace optrail::ops {

// InvalidArgument: the code would read beyond an input. `library` is a shared
// object with Halide's runtime in it, `operands` what it was compiled for.
// Calls spread their loops over at most so many threads.
absl::StatusOr<std::unique_ptr<Invocation>> LoadHalideCode(
    absl::string_view library, const std::vector<OperandSpec>& operands,
    int threads);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_HALIDE_HALIDE_CODE_H_
