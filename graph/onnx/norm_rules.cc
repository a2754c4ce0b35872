// Softmax and norms.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/onnx/node_import.h"

namespace optrail::graph {
namespace {

using Results = std::vector<int>;

// Before opset 13, x was a matrix whose columns are all dimensions from the
// axis on.
struct SoftmaxRows {
  int x = -1;
  int64_t axis = 0;
  Dims dims;  // of the result
};

SoftmaxRows RowsOf(NodeImport& node) {
  SoftmaxRows rows;
  rows.x = node.In(0);
  rows.dims = node.dims(rows.x);
  const bool old = node.opset() < 13;
  rows.axis = node.Axis(node.Int("axis", old ? 1 : -1), node.rank(rows.x));
  if (!old || !node.ok()) return rows;
  const Dims& d = rows.dims;
  rows.x =
      node.Reshape(rows.x, {Elements(Dims(d.begin(), d.begin() + rows.axis)),
                            Elements(Dims(d.begin() + rows.axis, d.end()))});
  rows.axis = 1;
  return rows;
}

Results Softmax(NodeImport& node) {
  const SoftmaxRows rows = RowsOf(node);
  const int y = node.Emit("softmax", {rows.x}, {{"axis", rows.axis}});
  return {node.Reshape(y, rows.dims)};
}

Results LogSoftmax(NodeImport& node) {
  const SoftmaxRows rows = RowsOf(node);
  return {node.Reshape(node.LogSoftmax(rows.x, rows.axis), rows.dims)};
}

// 1 / sqrt(variance + epsilon), and the mean, over `axes`.
struct Moments {
  int mean = -1, factor = -1, variance = -1;
};

Moments MomentsOf(NodeImport& node, int x, const Dims& axes, double epsilon) {
  Moments m;
  m.mean = node.Reduce("reduce_mean", x, axes, true);
  const int centred = node.Emit("sub", {x, m.mean});
  m.variance = node.Reduce("reduce_mean", node.Emit("mul", {centred, centred}),
                           axes, true);
  m.factor = node.Emit(
      "reciprocal",
      {node.Emit("sqrt",
                 {node.Emit("add", {m.variance, node.Scalar(x, epsilon)})})});
  return m;
}

Results LayerNormalization(NodeImport& node) {
  const int x = node.In(0), scale = node.In(1);
  const int64_t axis = node.Axis(node.Int("axis", -1), node.rank(x));
  const double epsilon = node.Real("epsilon", 1e-5);
  if (!node.ok()) return {};
  const Dims dims = node.dims(x);
  const Dims row(dims.begin() + axis, dims.end());
  std::vector<int> operands = {x, node.Expand(scale, row)};
  if (node.Has(2)) operands.push_back(node.Expand(node.In(2), row));
  Results results = {node.Emit("layer_norm", operands,
                               {{"axis", axis}, {"epsilon", epsilon}})};
  if (!node.Wants(1) && !node.Wants(2)) return results;
  Dims axes;
  for (int64_t d = axis; d < node.rank(x); ++d) axes.push_back(d);
  const Moments m = MomentsOf(node, x, axes, epsilon);
  results.push_back(m.mean);
  results.push_back(m.factor);
  return results;
}

Results InstanceNormalization(NodeImport& node) {
  const int x = node.In(0), scale = node.In(1), bias = node.In(2);
  Dims axes;
  for (int64_t d = 2; d < node.rank(x); ++d) axes.push_back(d);
  const Moments m = MomentsOf(node, x, axes, node.Real("epsilon", 1e-5));
  const int64_t rank = node.rank(x);
  const int normal =
      node.Emit("mul", {node.Emit("sub", {x, m.mean}), m.factor});
  return {node.Emit("add",
                    {node.Emit("mul", {normal, node.AlongAxis(scale, 1, rank)}),
                     node.AlongAxis(bias, 1, rank)})};
}

// Groups of channels are normalised together.
Results GroupNormalization(NodeImport& node) {
  const int x = node.In(0), scale = node.In(1), bias = node.In(2);
  if (!node.ok()) return {};
  const Dims dims = node.dims(x);
  const int64_t groups = node.Int("num_groups", 0);
  if (dims.size() < 3 || groups < 1 || dims[1] % groups != 0 ||
      node.opset() < 21) {
    node.NotCovered("before opset 21, or with groups that do not fit");
    return {};
  }
  const int apart = node.Reshape(
      x, {dims[0], groups,
          Elements(dims) / std::max<int64_t>(dims[0] * groups, 1)});
  const Moments m = MomentsOf(node, apart, {2}, node.Real("epsilon", 1e-5));
  const int normal = node.Reshape(
      node.Emit("mul", {node.Emit("sub", {apart, m.mean}), m.factor}), dims);
  const int64_t rank = static_cast<int64_t>(dims.size());
  return {node.Emit("add",
                    {node.Emit("mul", {normal, node.AlongAxis(scale, 1, rank)}),
                     node.AlongAxis(bias, 1, rank)})};
}

Results MeanVariance(NodeImport& node) {
  const int x = node.In(0);
  const Dims axes = node.Axes(node.Ints("axes", {0, 2, 3}), node.rank(x));
  // ONNX adds 1e-9 to the deviation.
  const int mean = node.Reduce("reduce_mean", x, axes, true);
  const int centred = node.Emit("sub", {x, mean});
  const int variance = node.Reduce(
      "reduce_mean", node.Emit("mul", {centred, centred}), axes, true);
  const int deviation =
      node.Emit("add", {node.Emit("sqrt", {variance}), node.Scalar(x, 1e-9)});
  return {node.Emit("div", {centred, deviation})};
}

// momentum * old + (1 - momentum) * seen
int Running(NodeImport& node, int old, int seen, double momentum) {
  if (!node.ok()) return NodeImport::kFailed;
  const int flat = node.Reshape(seen, node.dims(old));
  return node.Emit("add",
                   {node.Emit("mul", {old, node.Scalar(old, momentum)}),
                    node.Emit("mul", {flat, node.Scalar(flat, 1 - momentum)})});
}

Results BatchNormalization(NodeImport& node) {
  const int x = node.In(0), scale = node.In(1), bias = node.In(2),
            mean = node.In(3), variance = node.In(4);
  const double epsilon = node.Real("epsilon", 1e-5);
  const bool training = node.opset() >= 14 ? node.Int("training_mode", 0) != 0
                        : node.opset() < 7 ? node.Int("is_test", 0) == 0
                                           : node.Wants(1);
  if (!node.ok()) return {};
  if (!training) {
    return {node.Emit("batch_norm", {x, scale, bias, mean, variance},
                      {{"epsilon", epsilon}})};
  }
  if (node.opset() < 14) {
    node.NotCovered("training before opset 14");
    return {};
  }
  const int64_t rank = node.rank(x);
  Dims axes = {0};
  for (int64_t d = 2; d < rank; ++d) axes.push_back(d);
  const Moments m = MomentsOf(node, x, axes, epsilon);
  const int normal =
      node.Emit("mul", {node.Emit("sub", {x, m.mean}), m.factor});
  const int y = node.Emit(
      "add", {node.Emit("mul", {normal, node.AlongAxis(scale, 1, rank)}),
              node.AlongAxis(bias, 1, rank)});
  const double momentum = node.Real("momentum", 0.9);
  return {y, Running(node, mean, m.mean, momentum),
          Running(node, variance, m.variance, momentum)};
}

// x / (bias + alpha / size * the sum of squares of near channels) ^ beta
Results Lrn(NodeImport& node) {
  const int x = node.In(0);
  const int64_t size = node.Int("size", 0);
  if (!node.ok()) return {};
  const Dims dims = node.dims(x);
  if (dims.size() < 2 || size < 1 || size > 1000) {
    node.Wrong(absl::StrCat("size=", size, " for ", TypeText(node.type(x))));
    return {};
  }
  Dims before(dims.size(), 0), after(dims.size(), 0);
  before[1] = (size - 1) / 2;
  after[1] = size - 1 - before[1];
  const int padded = node.Emit("pad", {node.Emit("mul", {x, x})},
                               {{"before", before},
                                {"after", after},
                                {"mode", std::string("constant")}});
  int sum = node.Slice(padded, 1, 0, dims[1]);
  for (int64_t i = 1; i < size; ++i) {
    sum = node.Emit("add", {sum, node.Slice(padded, 1, i, dims[1])});
  }
  const double factor = node.Real("alpha", 1e-4) / static_cast<double>(size);
  const int base =
      node.Emit("add", {node.Emit("mul", {sum, node.Scalar(x, factor)}),
                        node.Scalar(x, node.Real("bias", 1))});
  return {node.Emit(
      "div",
      {x, node.Emit("pow", {base, node.Scalar(x, node.Real("beta", 0.75))})})};
}

Results LpNormalization(NodeImport& node) {
  const int x = node.In(0);
  const int64_t axis = node.Axis(node.Int("axis", -1), node.rank(x));
  const bool one = node.Int("p", 2) == 1;
  const int sum = node.Reduce(
      "reduce_sum", one ? node.Emit("abs", {x}) : node.Emit("mul", {x, x}),
      {axis}, true);
  return {node.Emit("div", {x, one ? sum : node.Emit("sqrt", {sum})})};
}

}  // namespace

void AddNormRules(ImportRules& rules) {
  rules.insert({{"BatchNormalization", BatchNormalization},
                {"GroupNormalization", GroupNormalization},
                {"InstanceNormalization", InstanceNormalization},
                {"LRN", Lrn},
                {"LayerNormalization", LayerNormalization},
                {"LogSoftmax", LogSoftmax},
                {"LpNormalization", LpNormalization},
                {"MeanVarianceNormalization", MeanVariance},
                {"Softmax", Softmax}});
}

}  // namespace optrail::graph
