#include "ops/halide/problem.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {

absl::StatusOr<std::string> ProblemText(const Operator& op,
                                        const proto::Shape& shape,
                                        absl::string_view target) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<OperandSpec> operands,
                           op.Operands(shape));
  std::string text = absl::StrCat("target ", target, "\n");
  for (const proto::Dim& dim : shape.dims()) {
    absl::StrAppend(&text, "dim ", dim.name(), " ", dim.value(), "\n");
  }
  for (const proto::Attribute& attribute : shape.attributes()) {
    absl::StrAppend(&text, "attribute ", attribute.name(), " ",
                    tuning::ValueText(attribute), "\n");
  }
  for (const OperandSpec& operand : operands) {
    if (operand.role == Role::kInOut) {
      return absl::UnimplementedError("generated code does not work in place");
    }
    absl::StrAppend(&text, "operand ", tuning::DataTypeName(operand.data_type),
                    operand.role == Role::kInput ? " in" : " out");
    for (const int64_t extent : operand.dims) {
      absl::StrAppend(&text, " ", extent);
    }
    text += '\n';
  }
  return text;
}

std::string RequestText(absl::string_view kind, absl::string_view problem,
                        absl::string_view steps) {
  std::string text = absl::StrCat("kind ", kind, "\n", problem);
  for (const absl::string_view step :
       absl::StrSplit(steps, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&text, "step ", step, "\n");
  }
  return text;
}

}  // namespace optrail::ops
