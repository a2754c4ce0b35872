// Losses over classes. x is [n, classes, ...], the target [n, ...] names a
// class for each of the others.

#include "absl/strings/str_cat.h"
#include "graph/onnx/node_import.h"

namespace optrail::graph {
namespace {

using Results = std::vector<int>;

// Returns what is left of the losses of all targets: themselves, their sum, or
// their mean weighted as they are.
int Reduced(NodeImport& node, int losses, int weights) {
  const std::string reduction = node.Text("reduction", "mean");
  if (reduction == "none") return losses;
  if (reduction != "sum" && reduction != "mean") {
    node.Wrong(
        absl::StrCat("reduction=", reduction, "; expected none, sum or mean"));
  }
  Dims axes;
  for (int64_t d = 0; d < node.rank(losses); ++d) axes.push_back(d);
  const int sum = node.Reduce("reduce_sum", losses, axes, false);
  if (reduction == "sum") return sum;
  return node.Emit("div",
                   {sum, node.Reduce("reduce_sum", weights, axes, false)});
}

// The loss of `log_x`, logarithms of probabilities. Targets that are ignored
// may name no class; they count for nothing.
int NegativeLogLikelihood(NodeImport& node, int log_x, int target,
                          int class_weights) {
  if (!node.ok()) return NodeImport::kFailed;
  const Dims x = node.dims(log_x);
  Dims expected = x;
  if (x.size() >= 2) expected.erase(expected.begin() + 1);
  if (x.size() < 2 || node.dims(target) != expected ||
      (class_weights >= 0 && node.dims(class_weights) != Dims{x[1]})) {
    node.Wrong(absl::StrCat(
        "the target is ", TypeText(node.type(target)), " for ",
        TypeText(node.type(log_x)),
        "; expected a class for each, and weights for the classes or none"));
    return NodeImport::kFailed;
  }
  int at = node.Cast(target, proto::ELEMENT_I64);
  int ignored = -1;
  if (node.HasAttribute("ignore_index")) {
    ignored =
        node.Emit("equal", {at, node.Scalar(at, static_cast<double>(node.Int(
                                                    "ignore_index", 0)))});
    at = node.Emit("where", {ignored, node.Scalar(at, 0), at});
  }
  int weights = node.Expand(node.Scalar(log_x, 1), expected);
  if (class_weights >= 0) {
    weights = node.Emit("gather", {class_weights, at}, {{"axis", int64_t{0}}});
  }
  if (ignored >= 0) {
    weights = node.Emit("where", {ignored, node.Scalar(log_x, 0), weights});
  }
  Dims one = x;
  one[1] = 1;
  const int chosen =
      node.Reshape(node.Emit("gather_elements", {log_x, node.Reshape(at, one)},
                             {{"axis", int64_t{1}}}),
                   expected);
  int losses = node.Emit("mul", {node.Emit("neg", {chosen}), weights});
  if (ignored >= 0) {
    // A weight of 0 would not do: the logarithm may be infinite.
    losses = node.Emit("where", {ignored, node.Scalar(log_x, 0), losses});
  }
  return Reduced(node, losses, weights);
}

Results LogLikelihoodLoss(NodeImport& node) {
  return {NegativeLogLikelihood(node, node.In(0), node.In(1), node.InOr(2))};
}

Results SoftmaxCrossEntropy(NodeImport& node) {
  const int x = node.In(0);
  if (node.ok() && node.rank(x) < 2) {
    node.Wrong(absl::StrCat("the scores are ", TypeText(node.type(x)),
                            "; expected [n,classes,...]"));
  }
  const int log_x = node.LogSoftmax(x, 1);
  return {NegativeLogLikelihood(node, log_x, node.In(1), node.InOr(2)), log_x};
}

}  // namespace

void AddLossRules(ImportRules& rules) {
  rules.insert({{"NegativeLogLikelihoodLoss", LogLikelihoodLoss},
                {"SoftmaxCrossEntropyLoss", SoftmaxCrossEntropy}});
}

}  // namespace optrail::graph
