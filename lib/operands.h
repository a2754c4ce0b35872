#ifndef OPTRAIL_LIB_OPERANDS_H_
#define OPTRAIL_LIB_OPERANDS_H_

// Shapes and operands of operators, without a plan.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const std::string shape,
//                            InferShape("matmul", inputs, 2, nullptr));
//   OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Operand>* operands,
//                            OperandsOfText("matmul", shape));
//
// Thread-safe. Errors: NotFound names the operators there are;
// InvalidArgument what a shape or an input should be.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/optrail.h"
#include "ops/core/operator.h"
#include "tuning/proto/config.pb.h"

namespace optrail::lib {

struct Operand {
  ops::OperandSpec spec;
  std::string type;
  size_t bytes = 0, alignment = 1;

  // Points into this.
  optrail_operand View() const;
};
absl::StatusOr<std::vector<Operand>> OperandsOf(const ops::Operator& op,
                                                const proto::Shape& shape);
absl::Status NoSuchOperand(const std::string& what, size_t index, size_t count);

// The operands that optrail_shape_operand() returns; they live as long as the
// process.
absl::StatusOr<const std::vector<Operand>*> OperandsOfText(
    const std::string& op, const std::string& shape);

// Implements optrail_shape_text().
absl::StatusOr<std::string> ShapeText(const std::string& name,
                                      const int64_t* dims, size_t count,
                                      const char* attributes,
                                      const char* types);

// Implements optrail_infer_shape().
absl::StatusOr<std::string> InferShape(const std::string& name,
                                       const optrail_operand* inputs,
                                       size_t count, const char* attributes);

}  // namespace optrail::lib

#endif  // OPTRAIL_LIB_OPERANDS_H_
