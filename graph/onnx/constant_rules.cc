// Constants: those of a model, and what follows from shapes, ranges and
// triangles.

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/ir/ops.h"
#include "graph/onnx/node_import.h"

namespace optrail::graph {
namespace {

using Results = std::vector<int>;

// Layers may have a causal mask each, so these do not count together.
constexpr int64_t kMostOfTriangle = 1 << 24;

Results Shape(NodeImport& node) {
  const Dims dims = node.dims(node.In(0));
  const int64_t rank = static_cast<int64_t>(dims.size());
  const auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t begin = clamp(node.Int("start", 0));
  const int64_t end = std::max(begin, clamp(node.Int("end", rank)));
  return {node.IntConstant(Dims(dims.begin() + begin, dims.begin() + end),
                           {end - begin})};
}

Results Size(NodeImport& node) {
  return {node.IntConstant({Elements(node.dims(node.In(0)))}, {})};
}

Results ConstantOf(NodeImport& node) {
  const auto& attributes = node.onnx().attributes;
  for (const auto& [name, value] : attributes) {
    if (name == "value" && value.tensor != nullptr) {
      if (!value.tensor->problem.empty()) {
        node.NotCovered(value.tensor->problem);
        return {};
      }
      if (value.tensor->constant.absent()) {
        node.NotCovered("its value is in a file that is not there");
        return {};
      }
      return {node.Shared(*value.tensor)};
    }
    if (name == "value_int") return {node.IntConstant({value.integer}, {})};
    if (name == "value_ints") {
      return {node.IntConstant(value.integers,
                               {static_cast<int64_t>(value.integers.size())})};
    }
    if (name == "value_float") {
      return {
          node.Constant(Array::Reals(proto::ELEMENT_F32, {}, {value.real}))};
    }
    if (name == "value_floats") {
      return {node.Constant(Array::Reals(
          proto::ELEMENT_F32, {static_cast<int64_t>(value.reals.size())},
          value.reals))};
    }
  }
  node.NotCovered("only tensors, integers and reals are constants here");
  return {};
}

Results ConstantOfShape(NodeImport& node) {
  const Dims dims = node.KnownInts(0, "the shape");
  if (!node.ok()) return {};
  const absl::Status status = CheckDims(dims);
  if (!status.ok()) {
    node.Wrong(status.message());
    return {};
  }
  const auto found = node.onnx().attributes.find("value");
  if (found == node.onnx().attributes.end() ||
      found->second.tensor == nullptr) {
    return {node.Expand(node.Constant(Array::Zeros({proto::ELEMENT_F32, {}})),
                        dims)};
  }
  const OnnxTensor& value = *found->second.tensor;
  if (!value.problem.empty() || value.constant.absent() ||
      Elements(value.type.dims) != 1) {
    node.Wrong("expected one number as its value");
    return {};
  }
  Array one = ConstantArray(value.type, value.constant);
  one.type.dims.clear();
  return {node.Expand(node.Constant(one), dims)};
}

Results Range(NodeImport& node) {
  const Array start = node.Known(node.In(0), "start");
  const Array limit = node.Known(node.In(1), "limit");
  const Array delta = node.Known(node.In(2), "delta");
  if (!node.ok()) return {};
  if (start.elements() != 1 || limit.elements() != 1 || delta.elements() != 1 ||
      delta.At(0) == 0) {
    node.Wrong("expected three numbers, the last of which is not 0");
    return {};
  }
  const double count =
      std::max(0.0, std::ceil((limit.At(0) - start.At(0)) / delta.At(0)));
  if (!(count <= static_cast<double>(kMostElements))) {
    node.Wrong(absl::StrCat("would have ", count, " elements"));
  }
  if (!node.ok() || !node.MayMake(static_cast<int64_t>(count))) return {};
  Array range = Array::Zeros({start.type.type, {static_cast<int64_t>(count)}});
  for (int64_t i = 0; i < range.elements(); ++i) {
    if (range.is_real()) {
      range.reals[i] = start.At(0) + static_cast<double>(i) * delta.At(0);
    } else {
      range.integers[i] = start.integers[0] + i * delta.integers[0];
    }
  }
  return {node.Constant(range)};
}

// A matrix of ones on a diagonal, or below or above it, and zeros.
Array Triangle(int64_t rows, int64_t cols, int64_t k, int below, int above,
               proto::ElementType type) {
  Array mask = Array::Zeros({type, {rows, cols}});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      const int64_t beyond = j - i - k;
      const int one = beyond == 0 ? 1 : beyond < 0 ? below : above;
      if (mask.is_real()) {
        mask.reals[i * cols + j] = one;
      } else {
        mask.integers[i * cols + j] = one;
      }
    }
  }
  return mask;
}

// Fails where the matrix cannot be, or may not be made.
bool FitsTriangle(NodeImport& node, const Dims& dims, int64_t k) {
  if (!node.ok()) return false;
  const size_t rank = dims.size();
  if (rank < 2 || dims[rank - 2] * dims[rank - 1] > kMostOfTriangle ||
      std::abs(k) > kMostElements) {
    node.Wrong(absl::StrCat("k=", k, " for [", absl::StrJoin(dims, ","), "]"));
    return false;
  }
  return node.MayMake(dims[rank - 2] * dims[rank - 1]);
}

Results EyeLike(NodeImport& node) {
  const TensorType type = node.type(node.In(0));
  const int64_t k = node.Int("k", 0);
  if (type.dims.size() != 2) node.Wrong("expected a matrix");
  if (!FitsTriangle(node, type.dims, k)) return {};
  const int eye = node.Constant(
      Triangle(type.dims[0], type.dims[1], k, 0, 0, proto::ELEMENT_I64));
  return {node.Cast(eye, node.Type("dtype", type.type))};
}

Results Trilu(NodeImport& node) {
  const int x = node.In(0);
  const Dims given = node.Has(1) ? node.KnownInts(1, "k") : Dims{0};
  const Dims dims = node.dims(x);
  if (given.size() != 1 || !FitsTriangle(node, dims, given[0])) {
    node.Wrong("expected one number as k");
    return {};
  }
  const bool upper = node.Int("upper", 1) != 0;
  const int mask =
      node.Constant(Triangle(dims[dims.size() - 2], dims.back(), given[0],
                             !upper, upper, proto::ELEMENT_BOOL));
  return {node.Emit("where", {mask, x, node.Scalar(x, 0)})};
}

Results Dropout(NodeImport& node) {
  const int x = node.In(0);
  bool training = false;
  if (node.Has(2)) {
    const Dims given = node.KnownInts(2, "training_mode");
    training = !given.empty() && given[0] != 0;
  }
  if (node.ok() && training) {
    const Array ratio = node.Has(1)
                            ? node.Known(node.In(1), "the ratio")
                            : Array::Reals(proto::ELEMENT_F32, {}, {0.5});
    if (ratio.elements() != 1 || ratio.At(0) != 0) {
      node.NotCovered("training mode draws random numbers");
      return {};
    }
  }
  Results results = {x};
  if (node.Wants(1)) {
    results.push_back(node.Expand(
        node.Constant(Array::Integers(proto::ELEMENT_BOOL, {}, {1})),
        node.dims(x)));
  }
  return results;
}

}  // namespace

void AddConstantRules(ImportRules& rules) {
  rules.insert({{"Constant", ConstantOf},
                {"ConstantOfShape", ConstantOfShape},
                {"Dropout", Dropout},
                {"EyeLike", EyeLike},
                {"Range", Range},
                {"Shape", Shape},
                {"Size", Size},
                {"Trilu", Trilu}});
}

}  // namespace optrail::graph
