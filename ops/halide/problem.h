#ifndef OPTRAIL_OPS_HALIDE_PROBLEM_H_
#define OPTRAIL_OPS_HALIDE_PROBLEM_H_

// An operator's call and a program for it in the compiler's words (compile.h).
//
//   OPTRAIL_ASSIGN_OR_RETURN(const std::string problem,
//                            ProblemText(op, shape, "x86-64-linux-avx2-fma"));
//   AskCompiler(compiler, RequestText("describe", problem));
//   AskCompiler(compiler, RequestText("compile", problem,
//   program.StepsText()));

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/core/operator.h"
#include "tuning/proto/config.pb.h"

namespace optrail::ops {

// What is to be computed, for `target`, as Halide calls it. Unimplemented for
// operands that generated code cannot have.
absl::StatusOr<std::string> ProblemText(const Operator& op,
                                        const proto::Shape& shape,
                                        absl::string_view target);

// `steps`: of a program (tuning/schedule/program.h), one a line.
std::string RequestText(absl::string_view kind, absl::string_view problem,
                        absl::string_view steps = "");

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_HALIDE_PROBLEM_H_
