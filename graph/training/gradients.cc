#include "graph/training/gradients.h"

#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optrail::graph {
namespace {

bool IsWeight(const Graph& graph, const Node& node, size_t input) {
  const int value = node.inputs[input];
  if (value < 0 || !graph.is_constant(value) || !IsReal(graph.type(value).type))
    return false;
  const size_t rank = graph.type(value).dims.size();
  if (node.op == "matmul") return input == 1 && rank >= 2;
  if (node.op == "linear") return input >= 1;
  if (node.op == "add") return rank == 1;
  return node.op == "layer_norm" && input >= 1;
}

class Differentiator {
 public:
  explicit Differentiator(const Graph& model) {
    training_.graph = model;
    training_.forward_nodes = static_cast<int>(model.nodes.size());
  }

  absl::StatusOr<TrainingGraph> Run() {
    FindWhatIsNeeded();
    const std::vector<int> outputs = graph().outputs;
    for (const int output : outputs) {
      if (needed_.count(output) == 0) continue;
      const int gradient = graph().AddInput(
          absl::StrCat("gradient of ", Name(output)), graph().type(output));
      OPTRAIL_RETURN_IF_ERROR(Add(output, gradient));
    }
    for (int n = training_.forward_nodes - 1; n >= 0; --n) {
      // Adding nodes moves those that are there.
      const Node node = graph().nodes[n];
      const auto gradient = gradients_.find(node.outputs[0]);
      if (gradient == gradients_.end()) continue;
      node_ = &node;
      const absl::Status added = Differentiate(node, gradient->second);
      if (!added.ok()) {
        return absl::Status(
            added.code(),
            absl::StrCat("node \"", absl::CEscape(node.name), "\" (", node.op,
                         "): ", added.message()));
      }
    }
    for (const int weight : training_.weights) {
      const auto gradient = gradients_.find(weight);
      if (gradient == gradients_.end()) {
        return absl::InternalError(
            absl::StrCat("no gradient of ", Name(weight)));
      }
      graph().outputs.push_back(gradient->second);
    }
    OPTRAIL_RETURN_IF_ERROR(Validate(graph()));
    return std::move(training_);
  }

 private:
  using Value = absl::StatusOr<int>;

  Graph& graph() { return training_.graph; }
  const std::string& Name(int value) { return graph().values[value].name; }

  // Weights that the outputs depend on, and all values between.
  void FindWhatIsNeeded() {
    std::set<int> weights;
    for (const Node& node : graph().nodes) {
      bool is_needed = false;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (IsWeight(graph(), node, i)) weights.insert(node.inputs[i]);
        is_needed = is_needed || weights.count(node.inputs[i]) > 0 ||
                    needed_.count(node.inputs[i]) > 0;
      }
      if (is_needed && IsReal(graph().type(node.outputs[0]).type)) {
        needed_.insert(node.outputs.begin(), node.outputs.end());
      }
    }
    needed_.insert(weights.begin(), weights.end());
    std::set<int> reached(graph().outputs.begin(), graph().outputs.end());
    for (auto node = graph().nodes.rbegin(); node != graph().nodes.rend();
         ++node) {
      if (reached.count(node->outputs[0]) == 0) continue;
      reached.insert(node->inputs.begin(), node->inputs.end());
    }
    for (const int weight : weights) {
      if (reached.count(weight) > 0) training_.weights.push_back(weight);
    }
  }

  Value Make(const std::string& op, std::vector<int> inputs,
             Attributes attributes = {}) {
    return graph().AddNode(absl::StrCat(node_->name, "/gradient"), op,
                           std::move(inputs), std::move(attributes));
  }
  int Number(double number) {
    const proto::ElementType type = graph().type(node_->outputs[0]).type;
    return graph().AddConstant(absl::StrCat(node_->name, "/number"),
                               Array::Reals(type, {}, {number}));
  }

  // op(inputs...), where each input is a value or an error.
  Value Of(const std::string& op, const std::vector<Value>& inputs,
           Attributes attributes = {}) {
    std::vector<int> values;
    for (const Value& input : inputs) {
      if (!input.ok()) return input;
      values.push_back(*input);
    }
    return Make(op, std::move(values), std::move(attributes));
  }
  Value Mul(Value a, Value b) { return Of("mul", {a, b}); }
  Value Reshaped(Value x, Dims dims) {
    return Of("reshape", {x}, {{"dims", std::move(dims)}});
  }
  Value Transposed(int x) {
    Dims perm(graph().type(x).dims.size());
    std::iota(perm.begin(), perm.end(), 0);
    if (perm.size() < 2) {
      return absl::UnimplementedError("a product with a vector has no rule");
    }
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return Make("transpose", {x}, {{"perm", perm}});
  }
  Value Reduced(const std::string& op, Value x, const Dims& axes) {
    return Of(op, {x}, {{"axes", axes}, {"keepdims", int64_t{1}}});
  }

  // Adds up what was repeated to make `dims` of it.
  Value SumTo(Dims dims, Value gradient) {
    if (!gradient.ok()) return gradient;
    const Dims from = graph().type(*gradient).dims;
    if (from == dims) return gradient;
    const size_t more = from.size() - dims.size();
    Dims axes;
    for (size_t d = 0; d < from.size(); ++d) {
      if (d < more || (dims[d - more] == 1 && from[d] != 1)) {
        axes.push_back(static_cast<int64_t>(d));
      }
    }
    return Reshaped(
        axes.empty() ? gradient : Reduced("reduce_sum", gradient, axes), dims);
  }

  absl::Status Add(int value, Value gradient) {
    if (value < 0 || needed_.count(value) == 0) return absl::OkStatus();
    gradient = SumTo(graph().type(value).dims, gradient);
    if (!gradient.ok()) return gradient.status();
    const auto [at, is_new] = gradients_.emplace(value, *gradient);
    if (is_new) return absl::OkStatus();
    OPTRAIL_ASSIGN_OR_RETURN(
        at->second, graph().AddNode(absl::StrCat(Name(value), "/gradient"),
                                    "add", {at->second, *gradient}));
    return absl::OkStatus();
  }

  bool IsNeeded(int value) const { return needed_.count(value) > 0; }

  absl::Status Differentiate(const Node& node, int g) {
    const int x = node.inputs[0], y = node.outputs[0];
    const std::string& op = node.op;
    if (op == "add") {
      OPTRAIL_RETURN_IF_ERROR(Add(x, g));
      return Add(node.inputs[1], g);
    }
    if (op == "sub") {
      OPTRAIL_RETURN_IF_ERROR(Add(x, g));
      return IsNeeded(node.inputs[1]) ? Add(node.inputs[1], Make("neg", {g}))
                                      : absl::OkStatus();
    }
    if (op == "mul" || op == "div") return OfFactors(node, g);
    if (op == "matmul") return OfProduct(x, node.inputs[1], g);
    if (op == "linear") return OfLinear(node, g);
    if (op == "layer_norm") return OfLayerNorm(node, g);
    if (op == "softmax") {
      const Value product = Make("mul", {g, y});
      const Value sum = Reduced("reduce_sum", product, {node.Int("axis")});
      return Add(x, Mul(y, Of("sub", {g, sum})));
    }
    if (op == "reshape") return Add(x, Reshaped(g, graph().type(x).dims));
    // Repeated values are added up.
    if (op == "expand") return Add(x, g);
    if (op == "transpose") {
      const Dims perm = node.Ints("perm");
      Dims inverse(perm.size());
      for (size_t d = 0; d < perm.size(); ++d) {
        inverse[perm[d]] = static_cast<int64_t>(d);
      }
      return Add(x, Make("transpose", {g}, {{"perm", inverse}}));
    }
    if (op == "slice") return OfSlice(node, g);
    if (op == "where") {
      OPTRAIL_RETURN_IF_ERROR(
          Add(node.inputs[1], Of("where", {x, g, Number(0)})));
      return Add(node.inputs[2], Of("where", {x, Number(0), g}));
    }
    if (op == "concat") return OfConcat(node, g);
    if (op == "reduce_mean" || op == "reduce_sum") return OfReduction(node, g);
    return OfFunction(node, g);
  }

  absl::Status OfFactors(const Node& node, int g) {
    const int a = node.inputs[0], b = node.inputs[1];
    if (IsNeeded(a)) OPTRAIL_RETURN_IF_ERROR(Add(a, Make(node.op, {g, b})));
    if (!IsNeeded(b)) return absl::OkStatus();
    if (node.op == "mul") return Add(b, Make("mul", {g, a}));
    const Value quotient = Of("div", {Make("mul", {g, node.outputs[0]}), b});
    return Add(b, Of("neg", {quotient}));
  }

  absl::Status OfProduct(int a, int b, int g) {
    if (IsNeeded(a)) {
      OPTRAIL_RETURN_IF_ERROR(Add(a, Of("matmul", {g, Transposed(b)})));
    }
    if (!IsNeeded(b)) return absl::OkStatus();
    // Rows of all matrices on the left are rows of one.
    const Dims &left = graph().type(a).dims, &right = graph().type(b).dims;
    if (right.size() == 2 && left.size() > 2) {
      const Value rows =
          Reshaped(a, {Elements(left) / left.back(), left.back()});
      if (!rows.ok()) return rows.status();
      const Dims& of_g = graph().type(g).dims;
      const Value g_rows =
          Reshaped(g, {Elements(of_g) / of_g.back(), of_g.back()});
      return Add(b, Of("matmul", {Transposed(*rows), g_rows}));
    }
    return Add(b, Of("matmul", {Transposed(a), g}));
  }

  absl::Status OfLinear(const Node& node, int g) {
    if (!node.Text("activation").empty()) {
      return absl::UnimplementedError("a fused activation has no rule");
    }
    OPTRAIL_RETURN_IF_ERROR(OfProduct(node.inputs[0], node.inputs[1], g));
    return node.inputs.size() > 2 ? Add(node.inputs[2], g) : absl::OkStatus();
  }

  // With c = x - mean, i = 1 / sqrt(variance + epsilon), n = c i and h = g w,
  // the gradient of x is i (h - mean(h) - n mean(h n)).
  absl::Status OfLayerNorm(const Node& node, int g) {
    const int x = node.inputs[0], w = node.inputs[1];
    Dims axes;
    for (auto d = node.Int("axis");
         d < static_cast<int64_t>(graph().type(x).dims.size()); ++d) {
      axes.push_back(d);
    }
    const Value c = Of("sub", {x, Reduced("reduce_mean", x, axes)});
    const Value variance = Reduced("reduce_mean", Mul(c, c), axes);
    const Value root =
        Of("sqrt", {Of("add", {variance, Number(node.Real("epsilon"))})});
    const Value n = Of("div", {c, root});
    if (node.inputs.size() > 2) OPTRAIL_RETURN_IF_ERROR(Add(node.inputs[2], g));
    if (IsNeeded(w)) OPTRAIL_RETURN_IF_ERROR(Add(w, Mul(g, n)));
    if (!IsNeeded(x)) return absl::OkStatus();
    const Value h = Make("mul", {g, w});
    const Value left = Of("sub", {h, Reduced("reduce_mean", h, axes)});
    const Value right = Mul(n, Reduced("reduce_mean", Mul(h, n), axes));
    return Add(x, Of("div", {Of("sub", {left, right}), root}));
  }

  absl::Status OfSlice(const Node& node, int g) {
    const Dims starts = node.Ints("starts"), steps = node.Ints("steps");
    const Dims &from = graph().type(node.inputs[0]).dims,
               &to = graph().type(node.outputs[0]).dims;
    Dims after;
    for (size_t d = 0; d < from.size(); ++d) {
      if (steps[d] != 1) {
        return absl::UnimplementedError("a slice with steps has no rule");
      }
      after.push_back(from[d] - starts[d] - to[d]);
    }
    return Add(node.inputs[0], Make("pad", {g},
                                    {{"before", starts},
                                     {"after", after},
                                     {"mode", std::string("constant")}}));
  }

  absl::Status OfConcat(const Node& node, int g) {
    const Dims all = graph().type(node.outputs[0]).dims;
    const int64_t axis = node.Int("axis");
    Dims starts(all.size(), 0);
    for (const int input : node.inputs) {
      const Dims dims = graph().type(input).dims;
      if (IsNeeded(input)) {
        OPTRAIL_RETURN_IF_ERROR(Add(input, Make("slice", {g},
                                                {{"starts", starts},
                                                 {"steps", Dims(all.size(), 1)},
                                                 {"dims", dims}})));
      }
      starts[axis] += dims[axis];
    }
    return absl::OkStatus();
  }

  absl::Status OfReduction(const Node& node, int g) {
    const Dims dims = graph().type(node.inputs[0]).dims;
    Dims kept = dims;
    double count = 1;
    for (const int64_t axis : node.Ints("axes")) {
      count *= static_cast<double>(dims[axis]);
      kept[axis] = 1;
    }
    Value each = Reshaped(g, kept);
    if (node.op == "reduce_mean") each = Of("div", {each, Number(count)});
    return Add(node.inputs[0], Of("expand", {each}, {{"dims", dims}}));
  }

  // The number that a constant of one element is.
  absl::StatusOr<double> NumberOf(int value) {
    const auto& constant = graph().values[value].constant;
    if (constant == nullptr || constant->absent() ||
        Elements(graph().type(value).dims) != 1) {
      return absl::UnimplementedError("a computed exponent has no rule");
    }
    return ConstantArray(graph().type(value), *constant).At(0);
  }

  // The derivative of an elementwise function of one operand.
  Value Slope(const Node& node) {
    const int x = node.inputs[0], y = node.outputs[0];
    const std::string& op = node.op;
    if (op == "neg") return Number(-1);
    if (op == "exp") return y;
    if (op == "sqrt") return Of("div", {Number(.5), y});
    if (op == "tanh") return Of("sub", {Number(1), Make("mul", {y, y})});
    if (op == "sigmoid") return Mul(y, Of("sub", {Number(1), y}));
    if (op == "relu") return Make("sign", {y});
    if (op == "erf") {
      const Value square = Of("neg", {Make("mul", {x, x})});
      return Mul(Number(2 / std::sqrt(std::acos(-1.0))), Of("exp", {square}));
    }
    if (op == "pow") {
      OPTRAIL_ASSIGN_OR_RETURN(const double exponent, NumberOf(node.inputs[1]));
      return Mul(Number(exponent), exponent == 2
                                       ? Value(x)
                                       : Of("pow", {x, Number(exponent - 1)}));
    }
    return absl::UnimplementedError("has no rule for its gradient");
  }

  absl::Status OfFunction(const Node& node, int g) {
    const Value slope = Slope(node);
    if (!slope.ok()) return slope.status();
    return Add(node.inputs[0], Mul(g, slope));
  }

  TrainingGraph training_;
  std::set<int> needed_;          // values whose gradients are wanted
  std::map<int, int> gradients_;  // so far, of values
  const Node* node_ = nullptr;    // whose gradient is made
};

}  // namespace

absl::StatusOr<TrainingGraph> WithGradients(const Graph& model) {
  return Differentiator(model).Run();
}

}  // namespace optrail::graph
