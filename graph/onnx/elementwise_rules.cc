#include <cmath>

#include "absl/strings/str_cat.h"
#include "graph/onnx/node_import.h"

namespace optrail::graph {
namespace {

using Results = std::vector<int>;

// ONNX's name of an operator that is one of ours.
struct Same {
  const char* onnx;
  const char* op;
};

constexpr Same kUnary[] = {
    {"Abs", "abs"},           {"Acos", "acos"},    {"Acosh", "acosh"},
    {"Asin", "asin"},         {"Asinh", "asinh"},  {"Atan", "atan"},
    {"Atanh", "atanh"},       {"Ceil", "ceil"},    {"Cos", "cos"},
    {"Cosh", "cosh"},         {"Erf", "erf"},      {"Exp", "exp"},
    {"Floor", "floor"},       {"IsNaN", "is_nan"}, {"Log", "log"},
    {"Neg", "neg"},           {"Not", "not"},      {"Reciprocal", "reciprocal"},
    {"Relu", "relu"},         {"Round", "round"},  {"Sigmoid", "sigmoid"},
    {"Sign", "sign"},         {"Sin", "sin"},      {"Sinh", "sinh"},
    {"Softplus", "softplus"}, {"Sqrt", "sqrt"},    {"Tan", "tan"},
    {"Tanh", "tanh"},
};

constexpr Same kBinary[] = {
    {"Add", "add"},         {"And", "and"},
    {"Div", "div"},         {"Equal", "equal"},
    {"Greater", "greater"}, {"GreaterOrEqual", "greater_or_equal"},
    {"Less", "less"},       {"LessOrEqual", "less_or_equal"},
    {"Mul", "mul"},         {"Or", "or"},
    {"Sub", "sub"},         {"Xor", "xor"},
};

// Before opset 7, b was aligned with an axis of a and broadcast on request.
int Aligned(NodeImport& node, int a, int b) {
  if (node.opset() >= 7 || !node.HasAttribute("axis") || !node.ok()) return b;
  const int64_t rank = node.rank(a);
  const int64_t axis = node.Axis(node.Int("axis", 0), rank);
  Dims to = node.dims(b);
  if (axis + static_cast<int64_t>(to.size()) > rank) {
    node.Wrong(absl::StrCat("axis=", axis, " for ", TypeText(node.type(b))));
    return b;
  }
  to.resize(rank - axis, 1);
  return node.Reshape(b, to);
}

Results Many(NodeImport& node, const char* op) {
  int result = node.In(0);
  for (int i = 1; i < node.inputs(); ++i) {
    result = node.Emit(op, {result, node.In(i)});
  }
  return {result};
}

Results Mean(NodeImport& node) {
  const int sum = Many(node, "add")[0];
  return {node.Emit("div", {sum, node.Scalar(sum, node.inputs())})};
}

Results Mod(NodeImport& node) {
  return {node.Emit(node.Int("fmod", 0) != 0 ? "fmod" : "mod",
                    {node.In(0), node.In(1)})};
}

// The exponent may have another type; the result has that of the base.
Results Pow(NodeImport& node) {
  const int base = node.In(0), exponent = Aligned(node, base, node.In(1));
  const auto type = node.type(base).type, other = node.type(exponent).type;
  if (IsReal(other) && !IsReal(type)) {
    return {
        node.Cast(node.Emit("pow", {node.Cast(base, other), exponent}), type)};
  }
  return {node.Emit("pow", {base, node.Cast(exponent, type)})};
}

Results BitShift(NodeImport& node) {
  const std::string direction = node.Text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    node.Wrong(
        absl::StrCat("direction=", direction, ": expected LEFT or RIGHT"));
  }
  return {node.Emit(direction == "LEFT" ? "shift_left" : "shift_right",
                    {node.In(0), node.In(1)})};
}

Results Clip(NodeImport& node) {
  int x = node.In(0);
  int low = node.InOr(1), high = node.InOr(2);
  if (node.opset() < 11) {
    if (node.HasAttribute("min")) low = node.Scalar(x, node.Real("min", 0));
    if (node.HasAttribute("max")) high = node.Scalar(x, node.Real("max", 0));
  }
  if (low >= 0) x = node.Emit("max", {x, low});
  if (high >= 0) x = node.Emit("min", {x, high});
  return {x};
}

Results Cast(NodeImport& node) {
  if (!node.HasAttribute("to")) node.Wrong("has no attribute \"to\"");
  const proto::ElementType to = node.Type("to", proto::ELEMENT_F32);
  return {node.Cast(node.In(0), to)};
}

Results Where(NodeImport& node) {
  return {node.Emit("where", {node.In(0), node.In(1), node.In(2)})};
}

Results IsInf(NodeImport& node) {
  const int x = node.In(0);
  const bool negative = node.Int("detect_negative", 1) != 0;
  const bool positive = node.Int("detect_positive", 1) != 0;
  const int result = node.Emit("is_inf", {x});
  if (negative && positive) return {result};
  const int zero = node.Scalar(x, 0);
  const int sign =
      negative ? node.Emit("less", {x, zero}) : node.Emit("greater", {x, zero});
  if (negative || positive) return {node.Emit("and", {result, sign})};
  return {node.Emit("and", {result, node.Emit("not", {result})})};
}

// --- Activations
// --------------------------------------------------------------

int Positive(NodeImport& node, int x) {
  return node.Emit("greater", {x, node.Scalar(x, 0)});
}

// factor * (exp(x / divisor) - 1)
int Exponential(NodeImport& node, int x, double factor, double divisor) {
  const int scaled =
      divisor == 1 ? x : node.Emit("div", {x, node.Scalar(x, divisor)});
  const int less_one =
      node.Emit("sub", {node.Emit("exp", {scaled}), node.Scalar(x, 1)});
  return node.Emit("mul", {less_one, node.Scalar(x, factor)});
}

Results Elu(NodeImport& node) {
  const int x = node.In(0);
  return {node.Emit("where", {Positive(node, x), x,
                              Exponential(node, x, node.Real("alpha", 1), 1)})};
}

Results Celu(NodeImport& node) {
  const int x = node.In(0);
  const double alpha = node.Real("alpha", 1);
  return {node.Emit(
      "where", {Positive(node, x), x, Exponential(node, x, alpha, alpha)})};
}

Results Selu(NodeImport& node) {
  const int x = node.In(0);
  const double alpha = node.Real("alpha", 1.67326319217681884765625);
  const double gamma = node.Real("gamma", 1.05070102214813232421875);
  const int result = node.Emit(
      "where", {Positive(node, x), x, Exponential(node, x, alpha, 1)});
  return {node.Emit("mul", {result, node.Scalar(x, gamma)})};
}

int Leaky(NodeImport& node, int x, int slope) {
  return node.Emit("where", {node.Emit("less", {x, node.Scalar(x, 0)}),
                             node.Emit("mul", {x, slope}), x});
}

Results LeakyRelu(NodeImport& node) {
  const int x = node.In(0);
  return {Leaky(node, x, node.Scalar(x, node.Real("alpha", 0.01)))};
}

Results PRelu(NodeImport& node) {
  const int x = node.In(0);
  int slope = node.In(1);
  // One for each channel, before there was broadcasting.
  if (node.opset() < 7 && node.rank(x) > 1 && node.rank(slope) == 1) {
    slope =
        node.AlongAxis(slope, node.dims(slope)[0] == 1 ? 0 : 1, node.rank(x));
  }
  return {Leaky(node, x, slope)};
}

int HardSigmoidOf(NodeImport& node, int x, double alpha, double beta) {
  const int line = node.Emit(
      "add",
      {node.Emit("mul", {x, node.Scalar(x, alpha)}), node.Scalar(x, beta)});
  return node.Emit(
      "min", {node.Emit("max", {line, node.Scalar(x, 0)}), node.Scalar(x, 1)});
}

Results HardSigmoid(NodeImport& node) {
  return {HardSigmoidOf(node, node.In(0), node.Real("alpha", 0.2),
                        node.Real("beta", 0.5))};
}

Results HardSwish(NodeImport& node) {
  const int x = node.In(0);
  return {node.Emit("mul", {x, HardSigmoidOf(node, x, 1.0 / 6, 0.5)})};
}

Results Mish(NodeImport& node) {
  const int x = node.In(0);
  const int soft = node.Emit("softplus", {x});
  return {node.Emit("mul", {x, node.Emit("tanh", {soft})})};
}

Results Gelu(NodeImport& node) {
  const int x = node.In(0);
  int inner;
  if (node.Text("approximate", "none") == "tanh") {
    const int cube = node.Emit("mul", {node.Emit("mul", {x, x}), x});
    const int sum = node.Emit(
        "add", {x, node.Emit("mul", {cube, node.Scalar(x, 0.044715)})});
    inner = node.Emit(
        "tanh", {node.Emit("mul", {sum, node.Scalar(x, std::sqrt(2 / M_PI))})});
  } else {
    inner = node.Emit("erf",
                      {node.Emit("div", {x, node.Scalar(x, std::sqrt(2.0))})});
  }
  const int gate = node.Emit("add", {inner, node.Scalar(x, 1)});
  return {node.Emit("mul", {node.Emit("mul", {x, gate}), node.Scalar(x, 0.5)})};
}

Results Softsign(NodeImport& node) {
  const int x = node.In(0);
  const int sum = node.Emit("add", {node.Emit("abs", {x}), node.Scalar(x, 1)});
  return {node.Emit("div", {x, sum})};
}

Results ThresholdedRelu(NodeImport& node) {
  const int x = node.In(0);
  const int alpha = node.Scalar(x, node.Real("alpha", 1));
  return {node.Emit("where",
                    {node.Emit("greater", {x, alpha}), x, node.Scalar(x, 0)})};
}

Results Shrink(NodeImport& node) {
  const int x = node.In(0);
  const double lambda = node.Real("lambd", 0.5), bias = node.Real("bias", 0);
  const int low = node.Emit("less", {x, node.Scalar(x, -lambda)});
  const int high = node.Emit("greater", {x, node.Scalar(x, lambda)});
  const int raised = node.Emit("add", {x, node.Scalar(x, bias)});
  const int lowered = node.Emit("sub", {x, node.Scalar(x, bias)});
  const int zero = node.Scalar(x, 0);
  return {node.Emit("where",
                    {low, raised, node.Emit("where", {high, lowered, zero})})};
}

}  // namespace

void AddElementwiseRules(ImportRules& rules) {
  for (const Same& same : kUnary) {
    rules[same.onnx] = [op = same.op](NodeImport& node) -> Results {
      return {node.Emit(op, {node.In(0)})};
    };
  }
  for (const Same& same : kBinary) {
    rules[same.onnx] = [op = same.op](NodeImport& node) -> Results {
      const int a = node.In(0), b = node.In(1);
      return {node.Emit(op, {a, Aligned(node, a, b)})};
    };
  }
  for (const Same& same :
       {Same{"Max", "max"}, Same{"Min", "min"}, Same{"Sum", "add"}}) {
    rules[same.onnx] = [op = same.op](NodeImport& node) {
      return Many(node, op);
    };
  }
  rules["CastLike"] = [](NodeImport& node) -> Results {
    return {node.Cast(node.In(0), node.type(node.In(1)).type)};
  };
  rules.insert({{"BitShift", BitShift},
                {"Cast", Cast},
                {"Celu", Celu},
                {"Clip", Clip},
                {"Elu", Elu},
                {"Gelu", Gelu},
                {"HardSigmoid", HardSigmoid},
                {"HardSwish", HardSwish},
                {"IsInf", IsInf},
                {"LeakyRelu", LeakyRelu},
                {"Mean", Mean},
                {"Mish", Mish},
                {"Mod", Mod},
                {"PRelu", PRelu},
                {"Pow", Pow},
                {"Selu", Selu},
                {"Shrink", Shrink},
                {"Softsign", Softsign},
                {"ThresholdedRelu", ThresholdedRelu},
                {"Where", Where}});
}

}  // namespace optrail::graph
