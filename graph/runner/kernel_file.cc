// Functions that generated kernels share, and the entry point of those in C++.

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/ir/elementwise.h"
#include "graph/runner/codegen_text.h"
#include "graph/runner/cpp_codegen.h"

namespace optrail::graph {
namespace {

// Exponentials that the compiler vectorizes. Exp: 2^n times a polynomial of
// degree 6 on [-ln 2 / 2, ln 2 / 2] (Taylor's; 2e-7 relative). Erf: Abramowitz
// and Stegun, "Handbook of Mathematical Functions" (1964), 7.1.26, which is
// within 1.5e-7.
//
// Nobody reads floating-point exceptions: with them GCC does not vectorize a
// choice between two values, which made tanh 5.6 times as slow on Zen 4. (Clang
// does not know the pragma and needs none.)
constexpr char kHead[] = R"code(
#pragma GCC optimize("no-trapping-math")
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace {

// Rounds to nearest even; NaN stays NaN.
struct bf16 {
  uint16_t bits;
  bf16() = default;
  inline bf16(float value) {
    uint32_t word;
    __builtin_memcpy(&word, &value, 4);
    bits = value != value ? 0x7fc0 : (word + 0x7fff + (word >> 16 & 1)) >> 16;
  }
  inline operator float() const {
    const uint32_t word = uint32_t(bits) << 16;
    float value;
    __builtin_memcpy(&value, &word, 4);
    return value;
  }
};

template <class T> inline T Abs(T a);
template <class T> inline T Exp(T a) { return std::exp(a); }
inline float Exp(float a) {
  const float x = a < -87.0f ? -87.0f : a > 88.0f ? 88.0f : a;
  const float n = __builtin_floorf(x * 1.44269504f + 0.5f);
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  const float q =
      1 + r * (1 + r * (0.5f + r * (1 / 6.0f + r * (1 / 24.0f + r * (1 / 120.0f +
      r * (1 / 720.0f))))));
  const int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
  float scale;
  __builtin_memcpy(&scale, &bits, 4);
  const float y = q * scale;
  return a < -87.0f ? 0.0f : a > 88.0f ? a * 1e38f : a != a ? a : y;
}
template <class T> inline T Erf(T a) { return std::erf(a); }
inline float Erf(float a) {
  const float x = Abs(a);
  const float t = 1 / (1 + 0.3275911f * x);
  const float p = t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f +
                  t * (-1.453152027f + t * 1.061405429f))));
  const float y = 1 - p * Exp(-x * x);
  return a < 0 ? -y : y;
}
template <class T> inline T Tanh(T a) { return std::tanh(a); }
inline float Tanh(float a) {
  const float x = Abs(a);
  const float y = 1 - 2 / (Exp(2 * x) + 1);
  const float z = x * (1 - x * x * (1 / 3.0f - x * x * (2 / 15.0f)));
  const float w = x < 0.06f ? z : y;
  return a < 0 ? -w : w;
}

)code";

constexpr char kShared[] = R"code(
template <class T> inline T Abs(T a) { return a < T(0) ? T(-a) : a; }
template <class T> inline T Sigmoid(T a) { return T(1) / (T(1) + Exp(T(-a))); }
template <class T> inline T Divide(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    if (std::is_signed_v<T> && b == T(-1)) return T(0 - uint64_t(a));
  }
  return a / b;
}
template <class T> inline T Remainder(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return b == 0 || (std::is_signed_v<T> && b == T(-1)) ? T(0) : T(a % b);
  } else {
    return std::fmod(a, b);
  }
}
template <class T> inline T Modulo(T a, T b) {
  const T rest = Remainder(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? T(rest + b) : rest;
}
template <class T> inline T Power(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b < 0) return a == 1 ? T(1) : a == T(-1) ? T(b % 2 ? -1 : 1) : T(0);
    uint64_t result = 1, base = uint64_t(a);
    for (uint64_t e = uint64_t(b); e > 0; e >>= 1) {
      if (e & 1) result *= base;
      base *= base;
    }
    return T(result);
  } else {
    return b == T(2) ? a * a : b == T(3) ? a * a * a : std::pow(a, b);
  }
}
template <class To, class From> inline To Cast(From a) {
  if constexpr (std::is_same_v<To, bool>) {
    return a != 0;
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    if (a != a) return 0;
    if (a >= From(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    if (a <= From(std::numeric_limits<To>::lowest())) return std::numeric_limits<To>::lowest();
    return To(a);
  } else {
    return To(a);
  }
}
template <class T> inline T Least() {
  return std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity()
                                     : std::numeric_limits<T>::lowest();
}
template <class T> inline T Most() {
  return std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity()
                                     : std::numeric_limits<T>::max();
}
// Indices are clamped: what a wrong one reads is wrong, but the tensor's own.
template <class T> inline int64_t Index(T index, int64_t size) {
  const int64_t i = index < 0 ? int64_t(index) + size : int64_t(index);
  return i < 0 ? 0 : i >= size ? size - 1 : i;
}
)code";

constexpr char kSums[] = R"code(
inline float Total(const float* a, int64_t n) {
  float lane[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) for (int l = 0; l < 16; ++l) lane[l] += a[i + l];
  float sum = 0;
  for (; i < n; ++i) sum += a[i];
  for (const float l : lane) sum += l;
  return sum;
}
inline float Squares(const float* a, float mean, int64_t n) {
  float lane[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int l = 0; l < 16; ++l) lane[l] += (a[i + l] - mean) * (a[i + l] - mean);
  }
  float sum = 0;
  for (; i < n; ++i) sum += (a[i] - mean) * (a[i] - mean);
  for (const float l : lane) sum += l;
  return sum;
}
)code";

std::string OpFunction(const ElementwiseOp& op) {
  if (op.name == "where") {
    return "template <class T> inline T op_where(bool a, T b, T c) { return a "
           "? b : c; }\n";
  }
  const std::string result =
      op.result == ElementwiseOp::Result::kBool ? "bool" : "T";
  return absl::StrCat("template <class T> inline ", result, " op_", op.name,
                      op.inputs == 1 ? "(T a)" : "(T a, T b)", " { return ",
                      op.code, "; }\n");
}

}  // namespace

std::string SharedFunctions() { return kShared; }

std::string ElementwiseFunctions(const std::vector<GeneratedKernel>& kernels) {
  std::string text;
  for (const ElementwiseOp& op : ElementwiseTable()) {
    if (op.code.empty()) continue;
    // Kernels reduce with the last four.
    bool used = op.name == "add" || op.name == "mul" || op.name == "max" ||
                op.name == "min";
    const std::string call = absl::StrCat("op_", op.name, "(");
    for (const GeneratedKernel& kernel : kernels) {
      used = used || absl::StrContains(kernel.source, call);
    }
    if (used) text += OpFunction(op);
  }
  return text;
}

std::string CppFile(const std::vector<GeneratedKernel>& kernels) {
  std::string text =
      absl::StrCat(kHead, kShared, kSums, ElementwiseFunctions(kernels));
  std::string cases;
  for (size_t k = 0; k < kernels.size(); ++k) {
    absl::StrAppend(&text, "\nvoid ", KernelName(k),
                    "(const OptrailJitCall& call, void* const* p) {\n",
                    kernels[k].source, "}\n");
    absl::StrAppend(&cases, "    case ", k, ": return ", KernelName(k),
                    "(call, call.operands + 1);\n");
  }
  absl::StrAppend(&text,
                  "\n}  // namespace\n\nOPTRAIL_JIT_KERNEL(call) {\n  switch "
                  "(*static_cast<const int64_t*>(call.operands[0])) {\n",
                  cases, "  }\n}\n");
  return text;
}

}  // namespace optrail::graph
