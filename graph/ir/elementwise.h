#ifndef OPTRAIL_GRAPH_IR_ELEMENTWISE_H_
#define OPTRAIL_GRAPH_IR_ELEMENTWISE_H_

// The elementwise operators, once: what they are in double precision, and the
// C++ that a generated kernel has for them.
//
//   const ElementwiseOp* op = FindElementwise("max");
//   const double y = op->real(1.0, 2.0, 0.0);
//
// An expression names its operands a, b and c and their type T. NaN is passed
// on by all but comparisons.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/ir/array.h"

namespace optrail::graph {

struct ElementwiseOp {
  enum class Result { kSame, kBool, kTo };  // the type of the result

  std::string name;
  int inputs = 1;
  Result result = Result::kSame;
  // nullptr: not for reals, or not for integers.
  double (*real)(double a, double b, double c) = nullptr;
  // The result is wrapped to the type afterwards.
  int64_t (*integer)(proto::ElementType type, int64_t a, int64_t b,
                     int64_t c) = nullptr;
  std::string code;  // for operands of both kinds
};

const std::vector<ElementwiseOp>& ElementwiseTable();

// nullptr if there is none.
const ElementwiseOp* FindElementwise(absl::string_view name);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_IR_ELEMENTWISE_H_
