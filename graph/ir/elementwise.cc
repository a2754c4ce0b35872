#include "graph/ir/elementwise.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/ir/ops.h"

namespace optrail::graph {
namespace {

using Result = ElementwiseOp::Result;
using Type = proto::ElementType;

bool Less(Type type, int64_t a, int64_t b) {
  return type == proto::ELEMENT_U64
             ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b)
             : a < b;
}

// Without undefined behaviour where arithmetic overflows.
int64_t Add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) +
                              static_cast<uint64_t>(b));
}
int64_t Mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) *
                              static_cast<uint64_t>(b));
}
int64_t Negative(int64_t a) {
  return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
}

// Towards zero; what has no quotient is 0.
int64_t Div(Type type, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (type == proto::ELEMENT_U64) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) /
                                static_cast<uint64_t>(b));
  }
  return b == -1 ? Negative(a) : a / b;
}

// With the divisor's sign.
int64_t Mod(Type type, int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  if (type == proto::ELEMENT_U64) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) %
                                static_cast<uint64_t>(b));
  }
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

int64_t Fmod(Type type, int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  return type == proto::ELEMENT_U64 ? Mod(type, a, b) : a % b;
}

double RealMod(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

int64_t Power(int64_t base, int64_t exponent) {
  if (exponent < 0)
    return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = Mul(result, base);
    base = Mul(base, base);
  }
  return result;
}

double Min(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::nan("") : a < b ? a : b;
}
double Max(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::nan("") : a > b ? a : b;
}

double Softplus(double a) {
  return a > 0 ? a + std::log1p(std::exp(-a)) : std::log1p(std::exp(a));
}

#define REAL [](double a, double b, double c) -> double
#define INTEGER [](Type type, int64_t a, int64_t b, int64_t c) -> int64_t

void AddUnary(std::vector<ElementwiseOp>& ops) {
  const auto same = Result::kSame;
  const auto real = [&](const char* name, double (*f)(double, double, double),
                        const char* code) {
    ops.push_back({name, 1, same, f, nullptr, code});
  };
  ops.push_back({"neg", 1, same, REAL { return -a;
}
, INTEGER { return Negative(a); }
, "T(-a)"
}  // namespace
);
  ops.push_back({"abs", 1, same, REAL { return std::fabs(a);
  }  // namespace optrail::graph
  , INTEGER { return !IsUnsigned(type) && a < 0 ? Negative(a) : a; }
  , "Abs(a)"
  });
  ops.push_back({"sign", 1, same, REAL { return a > 0 ? 1 : a < 0 ? -1 : a;
  }
  , INTEGER { return Less(type, 0, a) ? 1 : a == 0 ? 0 : -1; }
  , "T(a > 0 ? T(1) : a < 0 ? T(-1) : a)"
  });
  ops.push_back({"relu", 1, same, REAL { return a < 0 ? 0 : a;
  }
  , INTEGER { return Less(type, a, 0) ? 0 : a; }
  , "(a < T(0) ? T(0) : a)"
  });
  real(
      "exp", REAL { return std::exp(a); }, "Exp(a)");
  real(
      "log", REAL { return std::log(a); }, "std::log(a)");
  real(
      "sqrt", REAL { return std::sqrt(a); }, "std::sqrt(a)");
  real(
      "reciprocal", REAL { return 1 / a; }, "(T(1) / a)");
  real(
      "erf", REAL { return std::erf(a); }, "Erf(a)");
  real(
      "tanh", REAL { return std::tanh(a); }, "Tanh(a)");
  real(
      "sigmoid", REAL { return 1 / (1 + std::exp(-a)); }, "Sigmoid(a)");
  real(
      "softplus", REAL { return Softplus(a); },
      "(a > 0 ? a + std::log1p(std::exp(-a)) : std::log1p(std::exp(a)))");
  real(
      "floor", REAL { return std::floor(a); }, "std::floor(a)");
  real(
      "ceil", REAL { return std::ceil(a); }, "std::ceil(a)");
  real(
      "round", REAL { return std::nearbyint(a); }, "std::nearbyint(a)");
  real(
      "sin", REAL { return std::sin(a); }, "std::sin(a)");
  real(
      "cos", REAL { return std::cos(a); }, "std::cos(a)");
  real(
      "tan", REAL { return std::tan(a); }, "std::tan(a)");
  real(
      "asin", REAL { return std::asin(a); }, "std::asin(a)");
  real(
      "acos", REAL { return std::acos(a); }, "std::acos(a)");
  real(
      "atan", REAL { return std::atan(a); }, "std::atan(a)");
  real(
      "sinh", REAL { return std::sinh(a); }, "std::sinh(a)");
  real(
      "cosh", REAL { return std::cosh(a); }, "std::cosh(a)");
  real(
      "asinh", REAL { return std::asinh(a); }, "std::asinh(a)");
  real(
      "acosh", REAL { return std::acosh(a); }, "std::acosh(a)");
  real(
      "atanh", REAL { return std::atanh(a); }, "std::atanh(a)");
  ops.push_back({"not", 1, Result::kBool, nullptr, INTEGER { return !a;
  }
  , "!a"
  });
  ops.push_back({"is_nan", 1, Result::kBool, REAL { return std::isnan(a);
  }
  , INTEGER { return 0; }
  , "(a != a)"
  });
  ops.push_back({"is_inf", 1, Result::kBool, REAL { return std::isinf(a);
  }
  , INTEGER { return 0; }
  , "std::isinf(double(a))"
  });
  }

  void AddBinary(std::vector<ElementwiseOp>& ops) {
    const auto same = Result::kSame;
  ops.push_back({"add", 2, same, REAL { return a + b;
  }
  , INTEGER { return Add(a, b); }
  , "T(a + b)"
  });
  ops.push_back({"sub", 2, same, REAL { return a - b;
  }
  , INTEGER { return Add(a, Negative(b)); }
  , "T(a - b)"
  });
  ops.push_back({"mul", 2, same, REAL { return a * b;
  }
  , INTEGER { return Mul(a, b); }
  , "T(a * b)"
  });
  ops.push_back({"div", 2, same, REAL { return a / b;
  }
  , INTEGER { return Div(type, a, b); }
  , "Divide(a, b)"
  });
  ops.push_back({"pow", 2, same, REAL { return std::pow(a, b);
  }
  , INTEGER { return Power(a, b); }
  , "Power(a, b)"
  });
  ops.push_back({"mod", 2, same, REAL { return RealMod(a, b);
  }
  , INTEGER { return Mod(type, a, b); }
  , "Modulo(a, b)"
  });
  ops.push_back({"fmod", 2, same, REAL { return std::fmod(a, b);
  }
  , INTEGER { return Fmod(type, a, b); }
  , "Remainder(a, b)"
  });
  ops.push_back({"min", 2, same, REAL { return Min(a, b);
  }
  , INTEGER { return Less(type, a, b) ? a : b; }
  , "(a != a || a < b ? a : b)"
  });
  ops.push_back({"max", 2, same, REAL { return Max(a, b);
  }
  , INTEGER { return Less(type, a, b) ? b : a; }
  , "(a != a || a > b ? a : b)"
  });
  ops.push_back({"shift_left", 2, same, nullptr, INTEGER {
                   return b < 0 || b > 63
                              ? 0
                              : static_cast<int64_t>(static_cast<uint64_t>(a)
                                                     << b);
  }
  , "T(uint64_t(b) > 63 ? 0 : uint64_t(a) << b)"
  });
  ops.push_back({"shift_right", 2, same, nullptr, INTEGER {
                   return b < 0 || b > 63
                              ? 0
                              : static_cast<int64_t>(static_cast<uint64_t>(a) >>
                                                     b);
  }
  , "T(uint64_t(b) > 63 ? 0 : uint64_t(a) >> b)"
  });
  }

  void AddLogic(std::vector<ElementwiseOp>& ops) {
    const auto is = Result::kBool;
  ops.push_back({"equal", 2, is, REAL { return a == b;
  }
  , INTEGER { return a == b; }
  , "(a == b)"
  });
  ops.push_back({"less", 2, is, REAL { return a < b;
  }
  , INTEGER { return Less(type, a, b); }
  , "(a < b)"
  });
  ops.push_back({"less_or_equal", 2, is, REAL { return a <= b;
  }
  , INTEGER { return !Less(type, b, a); }
  , "(a <= b)"
  });
  ops.push_back({"greater", 2, is, REAL { return a > b;
  }
  , INTEGER { return Less(type, b, a); }
  , "(a > b)"
  });
  ops.push_back({"greater_or_equal", 2, is, REAL { return a >= b;
  }
  , INTEGER { return !Less(type, a, b); }
  , "(a >= b)"
  });
  ops.push_back({"and", 2, Result::kSame, nullptr, INTEGER { return a & b;
  }
  , "T(a & b)"
  });
  ops.push_back({"or", 2, Result::kSame, nullptr, INTEGER { return a | b;
  }
  , "T(a | b)"
  });
  ops.push_back({"xor", 2, Result::kSame, nullptr, INTEGER { return a ^ b;
  }
  , "T(a ^ b)"
  });
  // a is the condition; the others are of one type.
  ops.push_back({"where", 3, Result::kSame, nullptr, nullptr, "(a ? b : c)"});
  ops.push_back({"cast", 1, Result::kTo, nullptr, nullptr, ""});
  }

#undef REAL
#undef INTEGER

  std::vector<ElementwiseOp> MakeElementwiseTable() {
    std::vector<ElementwiseOp> ops;
    AddUnary(ops);
    AddBinary(ops);
    AddLogic(ops);
    return ops;
  }

  absl::StatusOr<std::vector<TensorType>> Infer(const ElementwiseOp& op,
                                                const Node& node,
                                                const TypeList& inputs) {
    const bool chooses = op.name == "where";
    const TensorType& first = *inputs[chooses ? 1 : 0];
    TensorType result{first.type, inputs[0]->dims};
    if (chooses && inputs[0]->type != proto::ELEMENT_BOOL) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the condition is ", TypeText(*inputs[0]), "; expected bool"));
    }
    for (int i = chooses ? 1 : 0; i < op.inputs; ++i) {
      if (inputs[i]->type != first.type) {
        return absl::InvalidArgumentError(absl::StrCat(
            "types differ: ", TypeText(first), " and ", TypeText(*inputs[i])));
      }
    }
    for (int i = 1; i < op.inputs; ++i) {
      OPTRAIL_ASSIGN_OR_RETURN(result.dims,
                               Broadcast(result.dims, inputs[i]->dims));
    }
    const bool has_code = op.name == "where" || op.result == Result::kTo;
    if (!has_code &&
        (IsReal(first.type) ? op.real == nullptr : op.integer == nullptr)) {
      return absl::InvalidArgumentError(
          absl::StrCat("is not defined for ", ElementTypeName(first.type)));
    }
    if (op.result == Result::kBool) result.type = proto::ELEMENT_BOOL;
    if (op.result == Result::kTo) {
      const int64_t to = node.Int("to");
      if (to <= proto::ELEMENT_TYPE_UNSPECIFIED ||
          to > proto::ElementType_MAX) {
        return absl::InvalidArgumentError(
            absl::StrCat("to=", to, ": expected an element type"));
      }
      result.type = static_cast<Type>(to);
    }
    return std::vector<TensorType>{result};
  }

  Array CastTo(const Array& x, Type to) {
    Array y = Array::Zeros({to, x.type.dims});
    const int64_t count = x.elements();
    for (int64_t i = 0; i < count; ++i) {
      if (y.is_real()) {
        y.reals[i] =
            x.is_real() ? x.reals[i]
            : x.type.type == proto::ELEMENT_U64
                ? static_cast<double>(static_cast<uint64_t>(x.integers[i]))
                : static_cast<double>(x.integers[i]);
      } else {
        y.integers[i] =
            x.is_real() ? TruncateTo(to, x.reals[i]) : Wrap(to, x.integers[i]);
      }
    }
    // What a narrower type can't hold is lost here, and here alone.
    if (y.is_real() && to != proto::ELEMENT_F64) {
      return *Array::Decode(y.type, y.Encode());
    }
    return y;
  }

  Array Choose(const ArrayList& inputs, const TensorType& type) {
    Array y = Array::Zeros(type);
    ForEachElement(type.dims,
                   {BroadcastStrides(inputs[0]->type.dims, type.dims),
                    BroadcastStrides(inputs[1]->type.dims, type.dims),
                    BroadcastStrides(inputs[2]->type.dims, type.dims)},
                   [&](int64_t i, const std::vector<int64_t>& at) {
                     if (inputs[0]->integers[at[0]] != 0) {
                       y.Copy(i, *inputs[1], at[1]);
                     } else {
                       y.Copy(i, *inputs[2], at[2]);
                     }
                   });
    return y;
  }

  Array Evaluate(const ElementwiseOp& op, const ArrayList& inputs,
                 const TensorType& type) {
    if (op.result == Result::kTo) return CastTo(*inputs[0], type.type);
    if (op.name == "where") return Choose(inputs, type);
    Array y = Array::Zeros(type);
    std::vector<Dims> strides;
    for (int i = 0; i < op.inputs; ++i) {
      strides.push_back(BroadcastStrides(inputs[i]->type.dims, type.dims));
    }
    const Array& a = *inputs[0];
    const Array& b = *inputs[op.inputs > 1 ? 1 : 0];
    strides.resize(2, strides[0]);
    ForEachElement(
        type.dims, strides, [&](int64_t i, const std::vector<int64_t>& at) {
          if (a.is_real()) {
            const double value = op.real(a.reals[at[0]], b.reals[at[1]], 0);
            if (y.is_real()) {
              y.reals[i] = value;
            } else {
              y.integers[i] = value != 0;
            }
          } else {
            y.integers[i] =
                Wrap(type.type, op.integer(a.type.type, a.integers[at[0]],
                                           b.integers[at[1]], 0));
          }
        });
    return y;
  }

  }  // namespace

  const std::vector<ElementwiseOp>& ElementwiseTable() {
    static const auto* const table =
        new std::vector<ElementwiseOp>(MakeElementwiseTable());
    return *table;
  }

  const ElementwiseOp* FindElementwise(absl::string_view name) {
    for (const ElementwiseOp& op : ElementwiseTable()) {
      if (op.name == name) return &op;
    }
    return nullptr;
  }

  std::vector<OpSpec> ElementwiseOps() {
    std::vector<OpSpec> specs;
    for (const ElementwiseOp& op : ElementwiseTable()) {
      OpSpec spec;
      spec.name = op.name;
      spec.kind = OpKind::kElementwise;
      spec.min_inputs = spec.max_inputs = op.inputs;
      spec.infer = [&op](const Node& node, const TypeList& inputs) {
        return Infer(op, node, inputs);
      };
      spec.evaluate = [&op](const Node& node, const ArrayList& inputs,
                            const std::vector<TensorType>& types)
          -> absl::StatusOr<std::vector<Array>> {
        return std::vector<Array>{Evaluate(op, inputs, types[0])};
      };
      specs.push_back(std::move(spec));
    }
    return specs;
  }

  }  // namespace optrail::graph
