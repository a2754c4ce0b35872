#ifndef OPTRAIL_SUITES_EVALUATION_RANDOM_SHAPES_H_
#define OPTRAIL_SUITES_EVALUATION_RANDOM_SHAPES_H_

// RandomShapes draws shapes that nobody chose: what any_shape measures.
//
//   RandomShapeOptions options;
//   options.seed = 7;
//   OPTRAIL_ASSIGN_OR_RETURN(const std::vector<proto::Shape> shapes,
//                            RandomShapes(*entry->op, options));
//
// docs/method/any_shape.md states the distributions. A seed draws the same
// shapes of an operator on every machine, whichever other operators are drawn.

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/core/operator.h"
#include "tuning/proto/config.pb.h"

namespace optrail::suites {

struct RandomShapeOptions {
  uint64_t seed = 1;
  int count = 50;
  proto::DataType type = proto::F32;
  // Larger shapes are drawn again: all operands together, and a call's
  // operations.
  double max_bytes = 64e6;
  double max_flop = 6e8;
  // Shapes of fewer operations are drawn again.
  double min_flop = 0;
  // Extents and columns become the next multiple of it; rows and batches stay.
  int64_t multiple_of = 1;
  // In place of max_flop where the whole reference must be computed
  // (Operator::HasPartialReference).
  double max_reference_flop = 6e8;
  // Shapes for which this is false are drawn again; null accepts all.
  std::function<bool(const proto::Shape&)> accepts;
};

// Different shapes that the operator accepts. OutOfRange if the limits leave
// fewer than `count`; Unimplemented if the operator lacks the data type.
absl::StatusOr<std::vector<proto::Shape>> RandomShapes(
    const ops::Operator& op, const RandomShapeOptions& options);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_EVALUATION_RANDOM_SHAPES_H_
