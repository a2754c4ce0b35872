// Results depend on indices that are computed, or on the order of values.

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/ir/elementwise.h"
#include "graph/ir/ops.h"

namespace optrail::graph {
namespace {

absl::Status CheckIndices(const TensorType& type) {
  if (type.type == proto::ELEMENT_I64 || type.type == proto::ELEMENT_I32) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("indices are ", TypeText(type), "; expected i64 or i32"));
}

// Negative ones count from the end.
absl::StatusOr<int64_t> Index(int64_t index, int64_t size) {
  const int64_t place = index < 0 ? index + size : index;
  if (place >= 0 && place < size) return place;
  return absl::OutOfRangeError(
      absl::StrCat("index ", index, " of a dimension of ", size));
}

// gather {axis}: the indices' dimensions stand in place of the axis.
Types InferGather(const Node& node, const TypeList& inputs) {
  OPTRAIL_RETURN_IF_ERROR(CheckAxis(node, *inputs[0]));
  OPTRAIL_RETURN_IF_ERROR(CheckIndices(*inputs[1]));
  const int64_t axis = node.Int("axis");
  TensorType type = *inputs[0];
  type.dims.erase(type.dims.begin() + axis);
  type.dims.insert(type.dims.begin() + axis, inputs[1]->dims.begin(),
                   inputs[1]->dims.end());
  return std::vector<TensorType>{type};
}

Arrays Gather(const Node& node, const ArrayList& inputs,
              const std::vector<TensorType>& types) {
  const Dims& dims = inputs[0]->type.dims;
  const int64_t axis = node.Int("axis");
  const int64_t outer = Product(dims, 0, axis);
  const int64_t inner = Product(dims, axis + 1, dims.size());
  const int64_t count = inputs[1]->elements();
  Array y = Array::Zeros(types[0]);
  int64_t to = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t j = 0; j < count; ++j) {
      OPTRAIL_ASSIGN_OR_RETURN(const int64_t index,
                               Index(inputs[1]->integers[j], dims[axis]));
      const int64_t from = (o * dims[axis] + index) * inner;
      for (int64_t i = 0; i < inner; ++i) y.Copy(to++, *inputs[0], from + i);
    }
  }
  return std::vector<Array>{std::move(y)};
}

// gather_elements {axis}: each element names its place along the axis.
Types InferGatherElements(const Node& node, const TypeList& inputs) {
  OPTRAIL_RETURN_IF_ERROR(CheckAxis(node, *inputs[0]));
  OPTRAIL_RETURN_IF_ERROR(CheckIndices(*inputs[1]));
  const int64_t axis = node.Int("axis");
  const Dims &data = inputs[0]->dims, &at = inputs[1]->dims;
  bool fits = data.size() == at.size();
  for (size_t d = 0; fits && d < at.size(); ++d) {
    fits = d == axis || at[d] <= data[d];
  }
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat("indices ", TypeText(*inputs[1]), " do not lie within ",
                     TypeText(*inputs[0])));
  }
  return std::vector<TensorType>{{inputs[0]->type, at}};
}

// Calls body(i, place in data) for each element i of the indices.
template <class Body>
absl::Status ForEachIndex(const Array& data, const Array& indices, int64_t axis,
                          const Body& body) {
  const Dims& dims = indices.type.dims;
  const Dims strides = RowMajorStrides(dims);
  const Dims own = RowMajorStrides(data.type.dims);
  for (int64_t i = 0; i < indices.elements(); ++i) {
    OPTRAIL_ASSIGN_OR_RETURN(const int64_t index,
                             Index(indices.integers[i], data.type.dims[axis]));
    int64_t rest = i, from = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      from += (d == axis ? index : rest / strides[d]) * own[d];
      rest %= strides[d];
    }
    body(i, from);
  }
  return absl::OkStatus();
}

Arrays GatherElements(const Node& node, const ArrayList& inputs,
                      const std::vector<TensorType>& types) {
  Array y = Array::Zeros(types[0]);
  OPTRAIL_RETURN_IF_ERROR(ForEachIndex(
      *inputs[0], *inputs[1], node.Int("axis"),
      [&](int64_t i, int64_t from) { y.Copy(i, *inputs[0], from); }));
  return std::vector<Array>{std::move(y)};
}

// gather_nd {batch_dims}: the last dimension of the indices names a place.
Types InferGatherNd(const Node& node, const TypeList& inputs) {
  OPTRAIL_RETURN_IF_ERROR(CheckIndices(*inputs[1]));
  const int64_t batch = node.Int("batch_dims");
  const Dims &data = inputs[0]->dims, &at = inputs[1]->dims;
  const int64_t rank = static_cast<int64_t>(data.size());
  if (at.empty() || batch < 0 || batch >= static_cast<int64_t>(at.size()) ||
      at.back() < 0 || at.back() > rank - batch || batch > rank ||
      !std::equal(data.begin(), data.begin() + batch, at.begin())) {
    return absl::InvalidArgumentError(
        absl::StrCat("indices ", TypeText(*inputs[1]), " name no places of ",
                     TypeText(*inputs[0])));
  }
  TensorType type{inputs[0]->type, Dims(at.begin(), at.end() - 1)};
  type.dims.insert(type.dims.end(), data.begin() + batch + at.back(),
                   data.end());
  return std::vector<TensorType>{type};
}

// The first of the elements that tuple `t` of `indices` names, below `base`.
absl::StatusOr<int64_t> Place(const Array& indices, int64_t t, const Dims& dims,
                              const Dims& strides, int64_t first_dim,
                              int64_t base) {
  const int64_t depth = indices.type.dims.back();
  for (int64_t k = 0; k < depth; ++k) {
    OPTRAIL_ASSIGN_OR_RETURN(
        const int64_t index,
        Index(indices.integers[t * depth + k], dims[first_dim + k]));
    base += index * strides[first_dim + k];
  }
  return base;
}

Arrays GatherNd(const Node& node, const ArrayList& inputs,
                const std::vector<TensorType>& types) {
  const Dims &data = inputs[0]->type.dims, &at = inputs[1]->type.dims;
  const int64_t batch = node.Int("batch_dims");
  const Dims strides = RowMajorStrides(data);
  const int64_t batches = Product(data, 0, batch);
  const int64_t tuples = Product(at, batch, at.size() - 1);
  const int64_t inner = Product(data, batch + at.back(), data.size());
  const int64_t one = Product(data, batch, data.size());
  Array y = Array::Zeros(types[0]);
  int64_t to = 0;
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t t = 0; t < tuples; ++t) {
      OPTRAIL_ASSIGN_OR_RETURN(
          const int64_t from,
          Place(*inputs[1], b * tuples + t, data, strides, batch, b * one));
      for (int64_t i = 0; i < inner; ++i) y.Copy(to++, *inputs[0], from + i);
    }
  }
  return std::vector<Array>{std::move(y)};
}

// Writes or combines; reduction is "", "add", "mul", "min" or "max".
void Combine(Array& y, int64_t i, const Array& x, int64_t from,
             const ElementwiseOp* reduction) {
  if (reduction == nullptr) {
    y.Copy(i, x, from);
  } else if (y.is_real()) {
    y.reals[i] = reduction->real(y.reals[i], x.reals[from], 0);
  } else {
    y.integers[i] = Wrap(
        y.type.type,
        reduction->integer(y.type.type, y.integers[i], x.integers[from], 0));
  }
}

absl::Status CheckReduction(const Node& node) {
  const std::string reduction = node.Text("reduction");
  if (reduction.empty() || reduction == "add" || reduction == "mul" ||
      reduction == "min" || reduction == "max") {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("reduction=", reduction, ": expected add, mul, min or max"));
}

// scatter_elements {axis, reduction}: data, indices, updates.
Types InferScatterElements(const Node& node, const TypeList& inputs) {
  OPTRAIL_RETURN_IF_ERROR(InferGatherElements(node, inputs).status());
  OPTRAIL_RETURN_IF_ERROR(CheckReduction(node));
  if (!(*inputs[2] == TensorType{inputs[0]->type, inputs[1]->dims})) {
    return absl::InvalidArgumentError(
        absl::StrCat("updates are ", TypeText(*inputs[2]), " for indices ",
                     TypeText(*inputs[1])));
  }
  return std::vector<TensorType>{*inputs[0]};
}

Arrays ScatterElements(const Node& node, const ArrayList& inputs,
                       const std::vector<TensorType>& types) {
  Array y = *inputs[0];
  const ElementwiseOp* const reduction =
      FindElementwise(node.Text("reduction"));
  OPTRAIL_RETURN_IF_ERROR(ForEachIndex(
      *inputs[0], *inputs[1], node.Int("axis"), [&](int64_t i, int64_t from) {
        Combine(y, from, *inputs[2], i, reduction);
      }));
  return std::vector<Array>{std::move(y)};
}

// scatter_nd {reduction}: data, indices, updates.
Types InferScatterNd(const Node& node, const TypeList& inputs) {
  OPTRAIL_RETURN_IF_ERROR(CheckReduction(node));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TensorType> gathered,
                           InferGatherNd(node, inputs));
  if (!(gathered[0] == *inputs[2])) {
    return absl::InvalidArgumentError(
        absl::StrCat("updates are ", TypeText(*inputs[2]), "; expected ",
                     TypeText(gathered[0])));
  }
  return std::vector<TensorType>{*inputs[0]};
}

Arrays ScatterNd(const Node& node, const ArrayList& inputs,
                 const std::vector<TensorType>& types) {
  const Dims &data = types[0].dims, &at = inputs[1]->type.dims;
  const Dims strides = RowMajorStrides(data);
  const int64_t tuples = Product(at, 0, at.size() - 1);
  const int64_t inner = Product(data, at.back(), data.size());
  const ElementwiseOp* const reduction =
      FindElementwise(node.Text("reduction"));
  Array y = *inputs[0];
  for (int64_t t = 0; t < tuples; ++t) {
    OPTRAIL_ASSIGN_OR_RETURN(const int64_t to,
                             Place(*inputs[1], t, data, strides, 0, 0));
    for (int64_t i = 0; i < inner; ++i) {
      Combine(y, to + i, *inputs[2], t * inner + i, reduction);
    }
  }
  return std::vector<Array>{std::move(y)};
}

// top_k {axis, k, largest}: values and indices, in order.
Types InferTopK(const Node& node, const TypeList& inputs) {
  OPTRAIL_RETURN_IF_ERROR(CheckAxis(node, *inputs[0]));
  TensorType type = *inputs[0];
  const int64_t axis = node.Int("axis"), k = node.Int("k");
  if (k < 0 || k > type.dims[axis]) {
    return absl::InvalidArgumentError(
        absl::StrCat("k=", k, " of axis ", axis, " of ", TypeText(type)));
  }
  type.dims[axis] = k;
  return std::vector<TensorType>{type, {proto::ELEMENT_I64, type.dims}};
}

Arrays TopK(const Node& node, const ArrayList& inputs,
            const std::vector<TensorType>& types) {
  const Array& x = *inputs[0];
  const int64_t axis = node.Int("axis"), k = node.Int("k");
  const bool largest = node.Int("largest", 1) != 0;
  const Dims& dims = x.type.dims;
  const int64_t outer = Product(dims, 0, axis), size = dims[axis];
  const int64_t inner = Product(dims, axis + 1, dims.size());
  const std::string compare = largest ? "greater" : "less";
  const ElementwiseOp* const before = FindElementwise(compare);
  Array values = Array::Zeros(types[0]), indices = Array::Zeros(types[1]);
  std::vector<int64_t> order(size);
  for (int64_t row = 0; row < outer * inner; ++row) {
    const int64_t base = row / inner * size * inner + row % inner;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const int64_t i = base + a * inner, j = base + b * inner;
      // NaN after everything else, so that there is an order.
      return x.is_real()
                 ? before->real(x.reals[i], x.reals[j], 0) != 0 ||
                       (x.reals[i] == x.reals[i] && x.reals[j] != x.reals[j])
                 : before->integer(x.type.type, x.integers[i], x.integers[j],
                                   0) != 0;
    });
    const int64_t to = row / inner * k * inner + row % inner;
    for (int64_t j = 0; j < k; ++j) {
      values.Copy(to + j * inner, x, base + order[j] * inner);
      indices.integers[to + j * inner] = order[j];
    }
  }
  return std::vector<Array>{std::move(values), std::move(indices)};
}

// cumsum {axis, exclusive, reverse}
Types InferCumSum(const Node& node, const TypeList& inputs) {
  OPTRAIL_RETURN_IF_ERROR(CheckAxis(node, *inputs[0]));
  return std::vector<TensorType>{*inputs[0]};
}

Arrays CumSum(const Node& node, const ArrayList& inputs,
              const std::vector<TensorType>& types) {
  const Array& x = *inputs[0];
  const Dims& dims = x.type.dims;
  const int64_t axis = node.Int("axis"), size = dims[axis];
  const bool exclusive = node.Int("exclusive") != 0;
  const bool reverse = node.Int("reverse") != 0;
  const int64_t inner = Product(dims, axis + 1, dims.size());
  const int64_t rows = Product(dims, 0, axis) * inner;
  const ElementwiseOp* const add = FindElementwise("add");
  Array y = Array::Zeros(types[0]);
  Array sum = Array::Zeros({x.type.type, {}});
  const Array zero = sum;
  for (int64_t row = 0; row < rows; ++row) {
    sum = zero;
    for (int64_t step = 0; step < size; ++step) {
      const int64_t j = reverse ? size - 1 - step : step;
      const int64_t i = row / inner * size * inner + row % inner + j * inner;
      if (exclusive) y.Copy(i, sum, 0);
      Combine(sum, 0, x, i, add);
      if (!exclusive) y.Copy(i, sum, 0);
    }
  }
  return std::vector<Array>{std::move(y)};
}

}  // namespace

std::vector<OpSpec> IndexingOps() {
  const OpKind kind = OpKind::kOther;
  return {
      {"gather", kind, 2, 2, InferGather, Gather},
      {"gather_elements", kind, 2, 2, InferGatherElements, GatherElements},
      {"gather_nd", kind, 2, 2, InferGatherNd, GatherNd},
      {"scatter_elements", kind, 3, 3, InferScatterElements, ScatterElements},
      {"scatter_nd", kind, 3, 3, InferScatterNd, ScatterNd},
      {"top_k", kind, 1, 1, InferTopK, TopK},
      {"cumsum", kind, 1, 1, InferCumSum, CumSum}};
}

}  // namespace optrail::graph
