#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/ir/ops.h"

namespace optrail::graph {
namespace {

absl::Status CheckReal(const TypeList& inputs) {
  for (const TensorType* input : inputs) {
    if (input != nullptr &&
        (!IsReal(input->type) || input->type != inputs[0]->type)) {
      return absl::InvalidArgumentError(
          absl::StrCat(TypeText(*inputs[0]), " and ", TypeText(*input),
                       ": expected reals of one type"));
    }
  }
  return absl::OkStatus();
}

// softmax {axis}
Types InferSoftmax(const Node& node, const TypeList& inputs) {
  OPTRAIL_RETURN_IF_ERROR(CheckReal(inputs));
  OPTRAIL_RETURN_IF_ERROR(CheckAxis(node, *inputs[0]));
  return std::vector<TensorType>{*inputs[0]};
}

Arrays Softmax(const Node& node, const ArrayList& inputs,
               const std::vector<TensorType>& types) {
  const Array& x = *inputs[0];
  const Dims& dims = x.type.dims;
  const int64_t axis = node.Int("axis"), size = dims[axis];
  const int64_t inner = Product(dims, axis + 1, dims.size());
  Array y = Array::Zeros(types[0]);
  const int64_t rows = size == 0 ? 0 : x.elements() / size;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t base = row / inner * size * inner + row % inner;
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t j = 0; j < size; ++j) {
      most = std::max(most, x.reals[base + j * inner]);
    }
    for (int64_t j = 0; j < size; ++j) {
      double& value = y.reals[base + j * inner];
      value = std::exp(x.reals[base + j * inner] - most);
      sum += value;
    }
    for (int64_t j = 0; j < size; ++j) y.reals[base + j * inner] /= sum;
  }
  return std::vector<Array>{std::move(y)};
}

// layer_norm {axis, epsilon}: over the dimensions from `axis` on; x, scale,
// bias. rms_norm has no bias and subtracts no mean.
Types InferRowNorm(const Node& node, const TypeList& inputs) {
  OPTRAIL_RETURN_IF_ERROR(CheckReal(inputs));
  OPTRAIL_RETURN_IF_ERROR(CheckAxis(node, *inputs[0]));
  const Dims row(inputs[0]->dims.begin() + node.Int("axis"),
                 inputs[0]->dims.end());
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i] != nullptr && inputs[i]->dims != row) {
      return absl::InvalidArgumentError(
          absl::StrCat("scale or bias is ", TypeText(*inputs[i]), " for ",
                       TypeText(*inputs[0]), " from axis ", node.Int("axis")));
    }
  }
  return std::vector<TensorType>{*inputs[0]};
}

Arrays RowNorm(const Node& node, const ArrayList& inputs,
               const std::vector<TensorType>& types) {
  const Array& x = *inputs[0];
  const double epsilon = node.Real("epsilon");
  int64_t size = 1;
  for (size_t d = node.Int("axis"); d < x.type.dims.size(); ++d) {
    size *= x.type.dims[d];
  }
  Array y = Array::Zeros(types[0]);
  for (int64_t row = 0; size > 0 && row < x.elements() / size; ++row) {
    const double* const from = x.reals.data() + row * size;
    double mean = 0, square = 0;
    if (node.op == "layer_norm") {
      for (int64_t i = 0; i < size; ++i) mean += from[i];
      mean /= static_cast<double>(size);
    }
    for (int64_t i = 0; i < size; ++i) {
      square += (from[i] - mean) * (from[i] - mean);
    }
    const double factor =
        1 / std::sqrt(square / static_cast<double>(size) + epsilon);
    for (int64_t i = 0; i < size; ++i) {
      double value = (from[i] - mean) * factor * inputs[1]->reals[i];
      if (inputs.size() > 2 && inputs[2] != nullptr) {
        value += inputs[2]->reals[i];
      }
      y.reals[row * size + i] = value;
    }
  }
  return std::vector<Array>{std::move(y)};
}

// batch_norm {epsilon}: x [n, c, ...], scale, bias, mean and variance [c].
Types InferBatchNorm(const Node& node, const TypeList& inputs) {
  OPTRAIL_RETURN_IF_ERROR(CheckReal({inputs[0]}));
  const Dims& x = inputs[0]->dims;
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (x.size() < 2 || inputs[i]->dims != Dims{x[1]} ||
        inputs[i]->type != inputs[0]->type) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " is ", TypeText(*inputs[i]), " for ",
                       TypeText(*inputs[0])));
    }
  }
  return std::vector<TensorType>{*inputs[0]};
}

Arrays BatchNorm(const Node& node, const ArrayList& inputs,
                 const std::vector<TensorType>& types) {
  const Array& x = *inputs[0];
  const double epsilon = node.Real("epsilon");
  const int64_t channels = x.type.dims[1];
  const int64_t inner = Product(x.type.dims, 2, x.type.dims.size());
  Array y = Array::Zeros(types[0]);
  for (int64_t i = 0; i < x.elements(); ++i) {
    const int64_t c = i / inner % channels;
    y.reals[i] = (x.reals[i] - inputs[3]->reals[c]) /
                     std::sqrt(inputs[4]->reals[c] + epsilon) *
                     inputs[1]->reals[c] +
                 inputs[2]->reals[c];
  }
  return std::vector<Array>{std::move(y)};
}

}  // namespace

std::vector<OpSpec> NormOps() {
  const OpKind kind = OpKind::kOther;
  return {{"softmax", kind, 1, 1, InferSoftmax, Softmax},
          {"layer_norm", kind, 2, 3, InferRowNorm, RowNorm},
          {"rms_norm", kind, 2, 2, InferRowNorm, RowNorm},
          {"batch_norm", kind, 5, 5, InferBatchNorm, BatchNorm}};
}

}  // namespace optrail::graph
