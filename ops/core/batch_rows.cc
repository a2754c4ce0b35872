#include "ops/core/batch_rows.h"

#include "absl/status/statusor.h"

namespace optrail::ops {
namespace {

// Returns true if `fewer` is `all` with its first dimension in the ratio of
// rows.
bool IsBeginning(const std::vector<int64_t>& all,
                 const std::vector<int64_t>& fewer, int64_t rows,
                 int64_t fewer_rows) {
  if (all.empty() || all.size() != fewer.size()) return false;
  if (all[0] * fewer_rows != fewer[0] * rows) return false;
  return std::vector<int64_t>(all.begin() + 1, all.end()) ==
         std::vector<int64_t>(fewer.begin() + 1, fewer.end());
}

bool CountsRows(const std::vector<OperandSpec>& all,
                const std::vector<OperandSpec>& fewer, int64_t rows,
                int64_t fewer_rows) {
  if (all.size() != fewer.size()) return false;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_beginning =
        IsBeginning(all[i].dims, fewer[i].dims, rows, fewer_rows);
    const bool is_shared =
        all[i].role == Role::kInput && all[i].dims == fewer[i].dims;
    if (!is_beginning && !is_shared) return false;
  }
  return true;
}

}  // namespace

absl::optional<int> BatchDim(const Operator& op, const proto::Shape& shape) {
  const absl::StatusOr<std::vector<OperandSpec>> all = op.Operands(shape);
  if (!all.ok()) return absl::nullopt;
  for (int dim = 0; dim < shape.dims_size(); ++dim) {
    const int64_t rows = shape.dims(dim).value();
    for (const int64_t fewer_rows : FewerRows(rows)) {
      const proto::Shape smaller = WithRows(shape, dim, fewer_rows);
      if (!CheckShape(op, smaller).ok()) continue;
      const absl::StatusOr<std::vector<OperandSpec>> fewer =
          op.Operands(smaller);
      if (fewer.ok() && CountsRows(*all, *fewer, rows, fewer_rows)) return dim;
      break;
    }
  }
  return absl::nullopt;
}

proto::Shape WithRows(proto::Shape shape, int dim, int64_t rows) {
  shape.mutable_dims(dim)->set_value(rows);
  return shape;
}

std::vector<int64_t> FewerRows(int64_t rows) {
  std::vector<int64_t> fewer;
  for (const int64_t count : {int64_t{1}, int64_t{3}, rows / 2 | 1}) {
    if (count < rows && (fewer.empty() || count > fewer.back())) {
      fewer.push_back(count);
    }
  }
  return fewer;
}

}  // namespace optrail::ops
