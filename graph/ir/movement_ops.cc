// Results are copies of elements of the inputs, at places that are known when
// the graph is built.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "graph/ir/ops.h"

namespace optrail::graph {
namespace {

std::string Text(const Dims& dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ","), "]");
}

// reshape {dims}: the same elements in the same order.
Types InferReshape(const Node& node, const TypeList& inputs) {
  const Dims dims = node.Ints("dims");
  OPTRAIL_RETURN_IF_ERROR(CheckDims(dims));
  if (Elements(dims) != Elements(inputs[0]->dims)) {
    return absl::InvalidArgumentError(
        absl::StrCat(TypeText(*inputs[0]), " cannot become ", Text(dims)));
  }
  return std::vector<TensorType>{{inputs[0]->type, dims}};
}

Arrays Reshape(const Node& node, const ArrayList& inputs,
               const std::vector<TensorType>& types) {
  Array y = *inputs[0];
  y.type = types[0];
  return std::vector<Array>{std::move(y)};
}

// transpose {perm}: dimension d of the result is dimension perm[d] of x.
Types InferTranspose(const Node& node, const TypeList& inputs) {
  const Dims perm = node.Ints("perm");
  const Dims& dims = inputs[0]->dims;
  Dims sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  TensorType type{inputs[0]->type, {}};
  for (size_t d = 0; d < dims.size(); ++d) {
    if (perm.size() != dims.size() || sorted[d] != d) {
      return absl::InvalidArgumentError(absl::StrCat(
          "perm=", Text(perm), " is no order of the dimensions of ",
          TypeText(*inputs[0])));
    }
    type.dims.push_back(dims[perm[d]]);
  }
  return std::vector<TensorType>{type};
}

// The elements of x from `base` on, by a stride for each dimension of `type`.
std::vector<Array> Strided(const Array& x, int64_t base, const Dims& strides,
                           const TensorType& type) {
  Array y = Array::Zeros(type);
  ForEachElement(type.dims, {strides},
                 [&](int64_t i, const std::vector<int64_t>& at) {
                   y.Copy(i, x, base + at[0]);
                 });
  return {std::move(y)};
}

Arrays Transpose(const Node& node, const ArrayList& inputs,
                 const std::vector<TensorType>& types) {
  const Dims perm = node.Ints("perm");
  const Dims own = RowMajorStrides(inputs[0]->type.dims);
  Dims strides;
  for (const int64_t d : perm) strides.push_back(own[d]);
  return Strided(*inputs[0], 0, strides, types[0]);
}

// expand {dims}: repeated along new dimensions and those of size 1.
Types InferExpand(const Node& node, const TypeList& inputs) {
  const Dims dims = node.Ints("dims");
  OPTRAIL_RETURN_IF_ERROR(CheckDims(dims));
  OPTRAIL_ASSIGN_OR_RETURN(const Dims both, Broadcast(inputs[0]->dims, dims));
  if (both != dims) {
    return absl::InvalidArgumentError(
        absl::StrCat(TypeText(*inputs[0]), " does not expand to ", Text(dims)));
  }
  return std::vector<TensorType>{{inputs[0]->type, dims}};
}

Arrays Expand(const Node& node, const ArrayList& inputs,
              const std::vector<TensorType>& types) {
  return Strided(*inputs[0], 0,
                 BroadcastStrides(inputs[0]->type.dims, types[0].dims),
                 types[0]);
}

// slice {starts, steps, dims}: element i of a dimension is starts + i * steps
// of x. Steps may be negative.
Types InferSlice(const Node& node, const TypeList& inputs) {
  const Dims starts = node.Ints("starts"), steps = node.Ints("steps"),
             dims = node.Ints("dims");
  const Dims& from = inputs[0]->dims;
  if (starts.size() != from.size() || steps.size() != from.size() ||
      dims.size() != from.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("starts, steps and dims are not as many as dimensions of ",
                     TypeText(*inputs[0])));
  }
  OPTRAIL_RETURN_IF_ERROR(CheckDims(dims));
  for (size_t d = 0; d < from.size(); ++d) {
    if (dims[d] == 0) continue;
    const __int128 last =
        starts[d] + static_cast<__int128>(dims[d] - 1) * steps[d];
    if (starts[d] < 0 || starts[d] >= from[d] || last < 0 || last >= from[d]) {
      return absl::InvalidArgumentError(
          absl::StrCat("starts=", Text(starts), " steps=", Text(steps),
                       " dims=", Text(dims), " leave ", TypeText(*inputs[0])));
    }
  }
  return std::vector<TensorType>{{inputs[0]->type, dims}};
}

Arrays Slice(const Node& node, const ArrayList& inputs,
             const std::vector<TensorType>& types) {
  const Dims own = RowMajorStrides(inputs[0]->type.dims);
  const Dims starts = node.Ints("starts"), steps = node.Ints("steps");
  int64_t base = 0;
  Dims strides;
  for (size_t d = 0; d < own.size(); ++d) {
    base += starts[d] * own[d];
    strides.push_back(types[0].dims[d] <= 1 ? 0 : steps[d] * own[d]);
  }
  return Strided(*inputs[0], base, strides, types[0]);
}

// pad {before, after, mode}: mode is constant (input 1 is the value, 0 without
// it), edge, reflect or wrap.
Types InferPad(const Node& node, const TypeList& inputs) {
  const Dims before = node.Ints("before"), after = node.Ints("after");
  const std::string mode = node.Text("mode");
  TensorType type = *inputs[0];
  if (before.size() != type.dims.size() || after.size() != type.dims.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "pads ", Text(before), " and ", Text(after), " for ", TypeText(type)));
  }
  for (size_t d = 0; d < type.dims.size(); ++d) {
    const int64_t most = mode == "reflect" ? type.dims[d] - 1
                         : mode == "wrap"  ? type.dims[d]
                                           : kMostElements;
    if (before[d] < 0 || after[d] < 0 ||
        std::max(before[d], after[d]) > std::max<int64_t>(most, 0) ||
        (mode == "edge" && type.dims[d] == 0 && before[d] + after[d] > 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("pads ", Text(before), " and ", Text(after), " in mode ",
                       mode, " do not fit ", TypeText(type)));
    }
    type.dims[d] += before[d] + after[d];
  }
  if (inputs.size() > 1 && inputs[1] != nullptr &&
      (inputs[1]->type != type.type || Elements(inputs[1]->dims) != 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the value is ", TypeText(*inputs[1]), "; expected one ",
                     ElementTypeName(type.type)));
  }
  if (mode != "constant" && mode != "edge" && mode != "reflect" &&
      mode != "wrap") {
    return absl::InvalidArgumentError(absl::StrCat("mode=", mode));
  }
  return std::vector<TensorType>{type};
}

// The place in x of place `i` of the result; -1: it is padding.
int64_t PaddedPlace(int64_t i, int64_t size, const std::string& mode) {
  if (i >= 0 && i < size) return i;
  if (mode == "constant") return -1;
  if (mode == "edge") return i < 0 ? 0 : size - 1;
  if (mode == "wrap") return i < 0 ? i + size : i - size;
  return i < 0 ? -i : 2 * (size - 1) - i;
}

Arrays Pad(const Node& node, const ArrayList& inputs,
           const std::vector<TensorType>& types) {
  const Array& x = *inputs[0];
  const Dims own = RowMajorStrides(x.type.dims);
  const Dims before = node.Ints("before");
  const std::string mode = node.Text("mode");
  const Dims strides = RowMajorStrides(types[0].dims);
  const bool has_value = inputs.size() > 1 && inputs[1] != nullptr;
  Array y = Array::Zeros(types[0]);
  for (int64_t i = 0; i < y.elements(); ++i) {
    int64_t rest = i, from = 0;
    bool inside = true;
    for (size_t d = 0; d < own.size(); ++d) {
      const int64_t place =
          PaddedPlace(rest / strides[d] - before[d], x.type.dims[d], mode);
      rest %= strides[d];
      inside = inside && place >= 0;
      from += place * own[d];
    }
    if (inside) {
      y.Copy(i, x, from);
    } else if (has_value) {
      y.Copy(i, *inputs[1], 0);
    }
  }
  return std::vector<Array>{std::move(y)};
}

// concat {axis}
Types InferConcat(const Node& node, const TypeList& inputs) {
  TensorType type = *inputs[0];
  const int64_t axis = node.Int("axis");
  if (axis < 0 || axis >= static_cast<int64_t>(type.dims.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis=", axis, " of ", TypeText(type)));
  }
  for (size_t i = 1; i < inputs.size(); ++i) {
    TensorType other = *inputs[i];
    if (other.dims.size() == type.dims.size()) {
      const int64_t size = other.dims[axis];
      other.dims[axis] = type.dims[axis];
      if (other == type) {
        OPTRAIL_RETURN_IF_ERROR(CheckDims({size}));
        type.dims[axis] += size;
        OPTRAIL_RETURN_IF_ERROR(CheckDims(type.dims));
        continue;
      }
    }
    return absl::InvalidArgumentError(
        absl::StrCat(TypeText(*inputs[0]), " and ", TypeText(*inputs[i]),
                     " do not concatenate along axis ", axis));
  }
  return std::vector<TensorType>{type};
}

Arrays Concat(const Node& node, const ArrayList& inputs,
              const std::vector<TensorType>& types) {
  const int64_t axis = node.Int("axis");
  Array y = Array::Zeros(types[0]);
  const Dims& dims = types[0].dims;
  const int64_t inner = Product(dims, axis + 1, dims.size());
  const int64_t outer = Product(dims, 0, axis);
  const int64_t row = dims[axis] * inner;
  int64_t begin = 0;
  for (const Array* x : inputs) {
    const int64_t width = x->type.dims[axis] * inner;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < width; ++i) {
        y.Copy(o * row + begin + i, *x, o * width + i);
      }
    }
    begin += width;
  }
  return std::vector<Array>{std::move(y)};
}

}  // namespace

std::vector<OpSpec> MovementOps() {
  const OpKind kind = OpKind::kMovement;
  return {{"reshape", kind, 1, 1, InferReshape, Reshape},
          {"transpose", kind, 1, 1, InferTranspose, Transpose},
          {"expand", kind, 1, 1, InferExpand, Expand},
          {"slice", kind, 1, 1, InferSlice, Slice},
          {"pad", kind, 1, 2, InferPad, Pad},
          {"concat", kind, 1, -1, InferConcat, Concat}};
}

}  // namespace optrail::graph
