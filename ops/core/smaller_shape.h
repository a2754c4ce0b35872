#ifndef OPTRAIL_OPS_CORE_SMALLER_SHAPE_H_
#define OPTRAIL_OPS_CORE_SMALLER_SHAPE_H_

// A smaller shape of the same operator, on which configs can be compared where
// a call of the whole takes long: what is several times slower than the best
// there is slower on the whole, too, and need not be called.
//
//   const auto smaller = SmallerShape(op, shape, /*fraction=*/.05);
//   if (smaller.has_value()) ...
//
// It follows from the operator's definition alone: dimensions along which a
// call is as many times as much work as they are longer (rows, batches, all
// three of a product; not a table of which little is read, nor a sequence that
// attends to itself) are halved, always the largest of them, so that what is
// left keeps its proportions. It says nothing about how far the ranking on it
// can be trusted: suites/tune/screen.h does.

#include "absl/types/optional.h"
#include "ops/core/operator.h"
#include "tuning/proto/config.pb.h"

namespace optrail::ops {

// The work of a call of the result is about `fraction` of that of a call of
// `shape`, or up to twice as much; nullopt if no such shape can be had.
// Dimensions are not made smaller than 16: what there is to unroll and to block
// stays.
absl::optional<proto::Shape> SmallerShape(const Operator& op,
                                          const proto::Shape& shape,
                                          double fraction);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_SMALLER_SHAPE_H_
