#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/ir/elementwise.h"
#include "graph/ir/ops.h"

namespace optrail::graph {
namespace {

// reduce_* {axes, keepdims}: axes are sorted; none of them is no reduction.
Types InferReduce(const Node& node, const TypeList& inputs) {
  const Dims axes = node.Ints("axes");
  TensorType type{inputs[0]->type, {}};
  const Dims& dims = inputs[0]->dims;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0 || axes[i] >= static_cast<int64_t>(dims.size()) ||
        (i > 0 && axes[i] <= axes[i - 1])) {
      return absl::InvalidArgumentError(absl::StrCat(
          "axes=[", absl::StrJoin(axes, ","), "] of ", TypeText(*inputs[0])));
    }
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!std::binary_search(axes.begin(), axes.end(), d)) {
      type.dims.push_back(dims[d]);
    } else if (node.Int("keepdims") != 0) {
      type.dims.push_back(1);
    }
  }
  if (node.op == "reduce_mean" && !IsReal(type.type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("is not defined for ", ElementTypeName(type.type)));
  }
  return std::vector<TensorType>{type};
}

// The element that each result begins with.
void FillStart(Array& y, const std::string& op) {
  const double infinity = std::numeric_limits<double>::infinity();
  const bool is_unsigned = IsUnsigned(y.type.type);
  const int bits = static_cast<int>(8 * ElementBytes(y.type.type));
  const uint64_t all = ~uint64_t{0} >> (64 - bits);
  double real = 0;
  int64_t integer = 0;
  if (op == "reduce_prod") {
    real = integer = 1;
  } else if (op == "reduce_max") {
    real = -infinity;
    integer = is_unsigned ? 0 : -static_cast<int64_t>(all >> 1) - 1;
  } else if (op == "reduce_min") {
    real = infinity;
    integer = static_cast<int64_t>(is_unsigned ? all : all >> 1);
  }
  std::fill(y.reals.begin(), y.reals.end(), real);
  std::fill(y.integers.begin(), y.integers.end(), integer);
}

const ElementwiseOp* StepOf(const std::string& op) {
  return FindElementwise(op == "reduce_max"    ? "max"
                         : op == "reduce_min"  ? "min"
                         : op == "reduce_prod" ? "mul"
                                               : "add");
}

Arrays Reduce(const Node& node, const ArrayList& inputs,
              const std::vector<TensorType>& types) {
  const Array& x = *inputs[0];
  const Dims axes = node.Ints("axes");
  Dims kept = x.type.dims;
  for (const int64_t axis : axes) kept[axis] = 1;
  const ElementwiseOp* const step = StepOf(node.op);
  Array y = Array::Zeros(types[0]);
  FillStart(y, node.op);
  ForEachElement(
      x.type.dims, {BroadcastStrides(kept, x.type.dims)},
      [&](int64_t i, const std::vector<int64_t>& at) {
        if (x.is_real()) {
          y.reals[at[0]] = step->real(y.reals[at[0]], x.reals[i], 0);
        } else {
          y.integers[at[0]] = Wrap(
              x.type.type,
              step->integer(x.type.type, y.integers[at[0]], x.integers[i], 0));
        }
      });
  if (node.op == "reduce_mean") {
    const double count =
        static_cast<double>(x.elements()) /
        static_cast<double>(std::max<int64_t>(y.elements(), 1));
    for (double& value : y.reals) value /= count;
  }
  return std::vector<Array>{std::move(y)};
}

// arg_max, arg_min {axis, keepdims, last}: of equal values the first, or the
// last.
Types InferArg(const Node& node, const TypeList& inputs) {
  const int64_t axis = node.Int("axis");
  TensorType type{proto::ELEMENT_I64, inputs[0]->dims};
  if (axis < 0 || axis >= static_cast<int64_t>(type.dims.size()) ||
      type.dims[axis] == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis=", axis, " of ", TypeText(*inputs[0])));
  }
  if (node.Int("keepdims") != 0) {
    type.dims[axis] = 1;
  } else {
    type.dims.erase(type.dims.begin() + axis);
  }
  return std::vector<TensorType>{type};
}

Arrays Arg(const Node& node, const ArrayList& inputs,
           const std::vector<TensorType>& types) {
  const Array& x = *inputs[0];
  const Dims& dims = x.type.dims;
  const int64_t axis = node.Int("axis"), size = dims[axis];
  const bool last = node.Int("last") != 0;
  const ElementwiseOp* const better = FindElementwise(
      node.op == "arg_max" ? (last ? "greater_or_equal" : "greater")
                           : (last ? "less_or_equal" : "less"));
  const int64_t inner = Product(dims, axis + 1, dims.size());
  Array y = Array::Zeros(types[0]);
  for (int64_t row = 0; row < y.elements(); ++row) {
    const int64_t base = row / inner * size * inner + row % inner;
    int64_t best = 0;
    for (int64_t j = 1; j < size; ++j) {
      const int64_t a = base + j * inner, b = base + best * inner;
      const bool is_better = x.is_real()
                                 ? better->real(x.reals[a], x.reals[b], 0) != 0
                                 : better->integer(x.type.type, x.integers[a],
                                                   x.integers[b], 0) != 0;
      if (is_better) best = j;
    }
    y.integers[row] = best;
  }
  return std::vector<Array>{std::move(y)};
}

}  // namespace

std::vector<OpSpec> ReductionOps() {
  std::vector<OpSpec> ops;
  for (const char* name : {"reduce_sum", "reduce_mean", "reduce_max",
                           "reduce_min", "reduce_prod"}) {
    ops.push_back({name, OpKind::kReduction, 1, 1, InferReduce, Reduce});
  }
  for (const char* name : {"arg_max", "arg_min"}) {
    ops.push_back({name, OpKind::kReduction, 1, 1, InferArg, Arg});
  }
  return ops;
}

}  // namespace optrail::graph
