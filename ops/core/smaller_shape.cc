#include "ops/core/smaller_shape.h"

#include <cmath>
#include <cstdint>
#include <utility>

namespace optrail::ops {
namespace {

constexpr int64_t kLeastDim = 16;

// How far work may be from half where a dimension is halved: what does not
// depend on it (weights, a border) is little.
constexpr double kSlack = .15;

// Operators without arithmetic move bytes.
double Work(const Operator& op, const proto::Shape& shape) {
  const double flop = op.Flop(shape);
  return flop > 0 ? flop : op.MovedBytes(shape);
}

proto::Shape Halved(proto::Shape shape, int dim) {
  shape.mutable_dims(dim)->set_value(shape.dims(dim).value() / 2);
  return shape;
}

bool HalvesTheWork(const Operator& op, const proto::Shape& shape, int dim) {
  if (shape.dims(dim).value() < 2 * kLeastDim) return false;
  const proto::Shape half = Halved(shape, dim);
  if (!CheckShape(op, half).ok()) return false;
  const double share = Work(op, half) / Work(op, shape);
  return std::abs(share - .5) <= kSlack * .5;
}

}  // namespace

absl::optional<proto::Shape> SmallerShape(const Operator& op,
                                          const proto::Shape& shape,
                                          double fraction) {
  if (!CheckShape(op, shape).ok()) return absl::nullopt;
  const double whole = Work(op, shape);
  if (!(whole > 0) || !(fraction > 0)) return absl::nullopt;
  proto::Shape smaller = shape;
  // An odd dimension is halved a little below the half.
  while (Work(op, smaller) > 2 * (1 - kSlack) * fraction * whole) {
    int largest = -1;
    for (int i = 0; i < smaller.dims_size(); ++i) {
      if (HalvesTheWork(op, smaller, i) &&
          (largest < 0 ||
           smaller.dims(i).value() > smaller.dims(largest).value())) {
        largest = i;
      }
    }
    if (largest < 0) return absl::nullopt;
    smaller = Halved(std::move(smaller), largest);
  }
  return smaller;
}

}  // namespace optrail::ops
