// Fusion makes these of several operators, which define each: attention,
// conv_bn_relu and norms of a sum. (linear is beside matmul, since importers
// make it, too.)

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/ir/ops.h"

namespace optrail::graph {
namespace {

// attention {causal}: softmax(q k / sqrt(d)) v, q [b, h, m, d], k [b, h, d, n]
// (as products want it), v [b, h, n, d]. With "yes" row i does not see the
// columns after i + n - m.
Types InferAttention(const Node& node, const TypeList& inputs) {
  for (const TensorType* input : inputs) {
    if (input->dims.size() != 4 || !IsReal(input->type) ||
        input->type != inputs[0]->type) {
      return absl::InvalidArgumentError(
          absl::StrCat(TypeText(*input), ": expected q [b,h,m,d], k [b,h,d,n] ",
                       "and v [b,h,n,d] of one type"));
    }
  }
  const Dims &q = inputs[0]->dims, &k = inputs[1]->dims, &v = inputs[2]->dims;
  if (k != Dims{q[0], q[1], q[3], k[3]} || v != Dims{q[0], q[1], k[3], q[3]}) {
    return absl::InvalidArgumentError(absl::StrCat(
        TypeText(*inputs[0]), ", ", TypeText(*inputs[1]), ", ",
        TypeText(*inputs[2]), ": expected [b,h,m,d], [b,h,d,n] and [b,h,n,d]"));
  }
  if (node.Text("causal") == "yes" && q[2] > k[3]) {
    return absl::InvalidArgumentError(
        absl::StrCat(q[2], " rows of ", k[3], " columns with causal=yes"));
  }
  return std::vector<TensorType>{*inputs[0]};
}

Arrays Attention(const Node& node, const ArrayList& inputs,
                 const std::vector<TensorType>& types) {
  const Dims& q = inputs[0]->type.dims;
  const int64_t m = q[2], n = inputs[1]->type.dims[3];
  const TensorType scores{types[0].type, {q[0], q[1], m, n}};
  OPTRAIL_ASSIGN_OR_RETURN(
      std::vector<Array> s,
      FindOp("matmul")->evaluate(node, {inputs[0], inputs[1]}, {scores}));
  const double scale = 1 / std::sqrt(static_cast<double>(q[3]));
  const bool causal = node.Text("causal") == "yes";
  for (int64_t i = 0; i < s[0].elements(); ++i) {
    const bool hidden = causal && i % n > i / n % m + n - m;
    s[0].reals[i] = hidden ? -INFINITY : s[0].reals[i] * scale;
  }
  Node softmax;
  softmax.attributes["axis"] = int64_t{3};
  OPTRAIL_ASSIGN_OR_RETURN(
      s, FindOp("softmax")->evaluate(softmax, {&s[0]}, {scores}));
  return FindOp("matmul")->evaluate(node, {&s[0], inputs[2]}, types);
}

// conv_bn_relu {as conv}: max(conv(x, w) * scale + shift, 0); both have one
// element for each filter, of the type of x or of f32.
Types InferConvBnRelu(const Node& node, const TypeList& inputs) {
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<TensorType> types,
                           FindOp("conv")->infer(node, {inputs[0], inputs[1]}));
  for (const int i : {2, 3}) {
    if ((inputs[i]->type == types[0].type ||
         inputs[i]->type == proto::ELEMENT_F32) &&
        Elements(inputs[i]->dims) == inputs[1]->dims[0]) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(TypeText(*inputs[i]), ": expected an element for each of ",
                     inputs[1]->dims[0], " filters"));
  }
  return types;
}

Arrays ConvBnRelu(const Node& node, const ArrayList& inputs,
                  const std::vector<TensorType>& types) {
  OPTRAIL_ASSIGN_OR_RETURN(
      std::vector<Array> y,
      FindOp("conv")->evaluate(node, {inputs[0], inputs[1]}, types));
  int64_t pixels = 1;
  for (size_t d = 2; d < types[0].dims.size(); ++d) pixels *= types[0].dims[d];
  for (int64_t i = 0; i < y[0].elements(); ++i) {
    const int64_t channel = i / pixels % types[0].dims[1];
    double& value = y[0].reals[i];
    value = value * inputs[2]->reals[channel] + inputs[3]->reals[channel];
    if (value < 0) value = 0;
  }
  return y;
}

// add_layer_norm and add_rms_norm {as without add_}: the norm of x + r, and the
// sum itself.
OpSpec NormOfSum(const std::string& norm, int inputs) {
  const auto with_op = [](Node node, const std::string& op) {
    node.op = op;
    return node;
  };
  const auto infer = [=](const Node& node, const TypeList& inputs) -> Types {
    if (!(*inputs[0] == *inputs[1])) {
      return absl::InvalidArgumentError(
          absl::StrCat(TypeText(*inputs[0]), " and ", TypeText(*inputs[1]),
                       ": expected summands of one type"));
    }
    const TypeList of_norm(inputs.begin() + 1, inputs.end());
    OPTRAIL_ASSIGN_OR_RETURN(std::vector<TensorType> types,
                             FindOp(norm)->infer(with_op(node, norm), of_norm));
    types.push_back(*inputs[0]);
    return types;
  };
  const auto evaluate = [=](const Node& node, const ArrayList& inputs,
                            const std::vector<TensorType>& types) -> Arrays {
    OPTRAIL_ASSIGN_OR_RETURN(
        std::vector<Array> sum,
        FindOp("add")->evaluate(with_op(node, "add"), {inputs[0], inputs[1]},
                                {types[1]}));
    ArrayList of_norm(inputs.begin() + 1, inputs.end());
    of_norm[0] = &sum[0];
    OPTRAIL_ASSIGN_OR_RETURN(
        std::vector<Array> results,
        FindOp(norm)->evaluate(with_op(node, norm), of_norm, {types[0]}));
    results.push_back(std::move(sum[0]));
    return results;
  };
  return {absl::StrCat("add_", norm),
          OpKind::kOther,
          inputs,
          inputs,
          infer,
          evaluate};
}

}  // namespace

std::vector<OpSpec> FusedOps() {
  const OpKind kind = OpKind::kContraction;
  return {{"attention", kind, 3, 3, InferAttention, Attention},
          {"conv_bn_relu", kind, 4, 4, InferConvBnRelu, ConvBnRelu},
          NormOfSum("layer_norm", 4),
          NormOfSum("rms_norm", 3)};
}

}  // namespace optrail::graph
