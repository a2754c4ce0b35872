#ifndef OPTRAIL_OPS_CORE_BATCH_ROWS_H_
#define OPTRAIL_OPS_CORE_BATCH_ROWS_H_

// Rows that an operator computes apart from each other: those of a batch. A
// config is batch-invariant if a row has the same bits however many rows a call
// computes.
//
//   const absl::optional<int> dim = BatchDim(op, shape);
//   if (dim) {
//     const proto::Shape one_row = WithRows(shape, *dim, 1);
//   }
//
// They follow from the operator's operands alone: the first dimension that is
// the outermost of every result, and of every input that has it. Fewer rows are
// then the beginnings of operands. For a sum over rows (the gradient of a
// norm's weights) there is none.

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "ops/core/operator.h"
#include "tuning/proto/config.pb.h"

namespace optrail::ops {

// The index of the dimension; nullopt: there is none, or one row alone.
absl::optional<int> BatchDim(const Operator& op, const proto::Shape& shape);

proto::Shape WithRows(proto::Shape shape, int dim, int64_t rows);

// Numbers of rows to hold against all `rows`: one, a few, and an odd number in
// the middle, so that tiles are cut in many ways. Ascending.
std::vector<int64_t> FewerRows(int64_t rows);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_BATCH_ROWS_H_
