// Generated kernels as CUDA: what codegen.cc prints as C++, with a thread for
// each element or vector of elements, a block for each row.

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "graph/runner/codegen_text.h"

namespace optrail::graph {
namespace {

constexpr int kThreads = 256;
constexpr int kWarp = 32;
// More blocks than a GPU runs at once, each of which walks on.
constexpr int64_t kMostBlocks = 4096;
// Fewer threads leave multiprocessors idle: then vectors get shorter.
constexpr int64_t kLeastThreads = 1 << 15;
constexpr int64_t kVectorBytes = 16;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t Blocks(int64_t threads) {
  return std::clamp<int64_t>(CeilDiv(threads, kThreads), 1, kMostBlocks);
}

// Divisions of 32 bits are several times as fast.
std::string IndexType(const Nest& nest) {
  int64_t most = Elements(nest.dims);
  for (const Dims* strides : nest.strides) {
    int64_t reach = 0;
    for (size_t d = 0; d < strides->size(); ++d) {
      reach += std::abs((*strides)[d]) * nest.dims[d];
    }
    most = std::max(most, reach);
  }
  return most < (int64_t{1} << 30) ? "int" : "int64_t";
}

std::string YPointer(proto::ElementType type, int operand) {
  return absl::StrCat("  auto* const y = static_cast<", TypeName(type), "*>(p[",
                      operand, "]);\n");
}

// Declares a variable for each of `dims`, which are numbered by `loops`, as the
// place of number `from`; the last one changes fastest.
std::string Decompose(const std::string& type, const std::string& from,
                      const std::vector<size_t>& loops, const Dims& dims,
                      const std::string& indent) {
  if (loops.empty()) return "";
  std::string text =
      absl::StrCat(indent, type, " rest", loops[0], " = ", from, ";\n");
  const std::string rest = absl::StrCat("rest", loops[0]);
  for (size_t i = loops.size(); i-- > 0;) {
    if (i == 0) {
      absl::StrAppend(&text, indent, "const ", type, " i", loops[i], " = ",
                      rest, ";\n");
    } else {
      absl::StrAppend(&text, indent, "const ", type, " i", loops[i], " = ",
                      rest, " % ", dims[loops[i]], ";\n", indent, rest,
                      " /= ", dims[loops[i]], ";\n");
    }
  }
  return text;
}

// "for (int i = ...)" over `count`, shared out over all threads.
std::string GridLoop(const std::string& type, int64_t count) {
  return absl::StrCat("  for (", type, " i = block * ", kThreads,
                      " + threadIdx.x; i < ", count, "; i += blocks * ",
                      kThreads, ") {\n");
}

// True if the innermost loop reads neighbours: itself, or in a row that does
// not depend on that loop.
bool IsVectorLoad(const Expression& expression, const Expression::Line& line) {
  if (line.operand < 0 || line.strides.back() != 1) return false;
  if (line.index < 0) return true;
  const Expression::Line& index = expression.lines()[line.index];
  return index.operand >= 0 && index.index < 0 && index.strides.back() == 0;
}

// True if elements at all places of these strides begin vectors of `vector`.
bool IsAligned(const Dims& strides, int64_t offset, int64_t vector) {
  for (size_t d = 0; d + 1 < strides.size(); ++d) {
    if (strides[d] % vector != 0) return false;
  }
  return offset % vector == 0;
}

// Elements that a thread reads and writes at a stroke, of loops whose innermost
// one has `neighbours` iterations, if `results` vectors of one are at least
// `least`.
int64_t VectorOf(const Expression& expression, int64_t neighbours,
                 int64_t results, int64_t least, const Dims& y_strides,
                 int64_t y_offset, proto::ElementType y_type) {
  if (y_strides.back() != 1) return 1;
  int64_t bytes = ElementBytes(y_type);
  for (const Expression::Line& line : expression.lines()) {
    if (IsVectorLoad(expression, line)) {
      bytes = std::max(bytes, ElementBytes(line.type));
    }
  }
  int64_t vector = kVectorBytes / bytes;
  const auto fits = [&] {
    if (neighbours % vector != 0 || !IsAligned(y_strides, y_offset, vector)) {
      return false;
    }
    for (const Expression::Line& line : expression.lines()) {
      if (IsVectorLoad(expression, line) &&
          (!IsAligned(line.strides, line.offset, vector) ||
           (line.index >= 0 && line.stride % vector != 0))) {
        return false;
      }
    }
    return true;
  };
  while (vector > 1 && (results / vector < least || !fits())) vector /= 2;
  return vector;
}

// The place of a vector that begins at `from` in the innermost loop.
std::string VectorPlace(Dims strides, int64_t offset) {
  strides.back() = 0;
  return absl::StrCat(offset == 0 ? "" : absl::StrCat(offset, " + "),
                      Place(strides), " + from");
}

// Reads the vectors of the expression: value v is q<v>, which is marked.
std::string VectorReads(const Expression& expression, int64_t vector,
                        const std::string& indent,
                        std::vector<bool>* in_vectors) {
  in_vectors->assign(expression.lines().size(), false);
  std::string text;
  for (size_t v = 0; v < expression.lines().size(); ++v) {
    const Expression::Line& line = expression.lines()[v];
    if (!IsVectorLoad(expression, line)) continue;
    (*in_vectors)[v] = true;
    std::string row;
    if (line.index >= 0) {
      const Expression::Line& index = expression.lines()[line.index];
      row = absl::StrCat(" + Index(a", index.operand, "[", Place(index.strides),
                         "], ", line.size, ") * ", line.stride);
    }
    absl::StrAppend(&text, indent, "const auto q", v, " = LoadVector<", vector,
                    ">(a", line.operand, " + ", VectorPlace(line.strides, 0),
                    row, ");\n");
  }
  return text;
}

struct LoopText {
  std::string text;
  int64_t blocks = 1;
};

LoopText LoopOf(Expression expression, const Dims& dims, Dims y_strides,
                int y_operand, int64_t y_offset) {
  const Nest nest = NestOfLoop(expression, dims, y_strides);
  const size_t last = nest.dims.size() - 1;
  const int64_t all = Elements(nest.dims);
  const int64_t vector =
      VectorOf(expression, nest.dims.back(), all, kLeastThreads, y_strides,
               y_offset, LastType(expression));
  const int64_t count = all / vector;
  const std::string type = IndexType(nest);
  Dims steps = nest.dims;
  steps[last] /= vector;
  std::vector<size_t> loops(nest.dims.size());
  std::iota(loops.begin(), loops.end(), 0);
  const std::string y_at = absl::StrCat(
      y_offset == 0 ? "" : absl::StrCat(y_offset, " + "), Place(y_strides));
  std::string text = absl::StrCat(Pointers(expression),
                                  YPointer(LastType(expression), y_operand),
                                  GridLoop(type, count));
  if (vector == 1) {
    absl::StrAppend(&text, Decompose(type, "i", loops, steps, "    "),
                    Lines(expression, "    "), "    y[", y_at,
                    "] = ", Last(expression), ";\n  }\n");
    return {text, Blocks(count)};
  }
  // The same with the innermost place as that of the vector.
  std::vector<bool> in_vectors;
  const std::string reads =
      VectorReads(expression, vector, "    ", &in_vectors);
  const std::string result = absl::StrCat(
      "Vector<", TypeName(LastType(expression)), ", ", vector, ">");
  absl::StrAppend(
      &text, Decompose(type, "i", loops, steps, "    "), "    const ", type,
      " from = i", last, " * ", vector, ";\n", reads, "    ", result,
      " q;\n#pragma unroll\n    for (int l = 0; l < ", vector,
      "; ++l) {\n      const ", type, " i", last, " = from + l;\n",
      Lines(expression, "      ", in_vectors),
      "      q.at[l] = ", Last(expression), ";\n    }\n    *reinterpret_cast<",
      result, "*>(y + ", VectorPlace(y_strides, y_offset), ") = q;\n  }\n");
  return {text, Blocks(count)};
}

// Threads that share a result.
int ThreadsOfResult(int64_t results, int64_t reduced) {
  if (reduced < kWarp) return 1;
  return reduced <= 1024 || results >= kLeastThreads / kWarp ? kWarp : kThreads;
}

// The dimensions that a reduction keeps and those that it sums up, and how many
// places each have.
struct Split {
  std::vector<size_t> kept, gone;
  int64_t results = 1, count = 1;
};

Split SplitOf(const Nest& nest) {
  Split split;
  for (size_t d = 0; d < nest.dims.size(); ++d) {
    (nest.reduced[d] ? split.gone : split.kept).push_back(d);
    (nest.reduced[d] ? split.count : split.results) *= nest.dims[d];
  }
  return split;
}

// A thread for each vector of neighbouring results.
GeneratedKernel ReduceByRows(const std::string& op,
                             const Expression& expression, const Nest& nest,
                             const Dims& y_strides, int y_operand,
                             proto::ElementType y_type) {
  const std::string index = IndexType(nest);
  const std::string type = ValueName(LastType(expression));
  const size_t last = nest.dims.size() - 1;
  auto [kept, gone, results, count] = SplitOf(nest);
  Dims strides = y_strides;
  for (const size_t d : gone) strides[d] = 0;
  constexpr int64_t kLeastResults = 1 << 13;
  const int64_t vector = VectorOf(expression, nest.dims.back(), results,
                                  kLeastResults, strides, 0, y_type);
  Dims steps = nest.dims;
  steps[last] /= vector;
  results /= vector;
  std::vector<bool> in_vectors;
  const std::string reads =
      vector == 1 ? "" : VectorReads(expression, vector, "    ", &in_vectors);
  const std::string lanes =
      absl::StrCat("for (int l = 0; l < ", vector, "; ++l) ");
  std::string text = absl::StrCat(
      Pointers(expression), YPointer(y_type, y_operand),
      "  const int64_t result = int64_t(block) * ", kThreads,
      " + threadIdx.x;\n  if (result >= ", results, ") return;\n",
      Decompose(index, "result", kept, steps, "  "), "  const ", index,
      " from = i", last, " * ", vector, ";\n  ", type, " acc[", vector,
      "];\n#pragma unroll\n  ", lanes, "acc[l] = ", StartOf(op, type),
      ";\n#pragma unroll 4\n  for (", index, " r = 0; r < ", count,
      "; ++r) {\n", Decompose(index, "r", gone, nest.dims, "    "), reads,
      "#pragma unroll\n    ", lanes, "{\n      const ", index, " i", last,
      " = from + l;\n", Lines(expression, "      ", in_vectors),
      "      acc[l] = ", StepOf(op), "(acc[l], ", Last(expression),
      ");\n    }\n  }\n");
  const std::string result =
      absl::StrCat("Vector<", TypeName(y_type), ", ", vector, ">");
  absl::StrAppend(
      &text, "  ", result, " q;\n#pragma unroll\n  ", lanes, "q.at[l] = acc[l]",
      op == "reduce_mean" ? absl::StrCat(" / ", type, "(", count, ")") : "",
      ";\n  *reinterpret_cast<", result, "*>(y + ", VectorPlace(strides, 0),
      ") = q;\n");
  return {text, CeilDiv(results, kThreads), kThreads};
}

GeneratedKernel ReduceOf(const std::string& op, Expression expression,
                         const Dims& dims, const std::vector<bool>& reduced,
                         Dims y_strides, int y_operand,
                         proto::ElementType y_type) {
  const ReductionNest of =
      NestOfReduction(expression, dims, reduced, y_strides);
  const Nest& nest = of.nest;
  if (of.by_rows) {
    return ReduceByRows(op, expression, nest, y_strides, y_operand, y_type);
  }
  const std::string index = IndexType(nest);
  const std::string type = ValueName(LastType(expression));
  auto [kept, gone, results, count] = SplitOf(nest);
  Dims kept_strides = y_strides;
  for (const size_t d : gone) kept_strides[d] = 0;
  const int threads = ThreadsOfResult(results, count);
  const std::string step = absl::StrCat(
      "[](", type, " a, ", type, " b) { return ", StepOf(op), "(a, b); }");
  std::string text = absl::StrCat(
      Pointers(expression), YPointer(y_type, y_operand),
      "  const int64_t thread = int64_t(block) * ", kThreads,
      " + threadIdx.x;\n  const ", index, " result = thread / ", threads,
      ";\n  if (thread >= ", results * threads, ") return;\n",
      Decompose(index, "result", kept, nest.dims, "  "), "  ", type,
      " acc = ", StartOf(op, type), ";\n  for (", index, " r = thread % ",
      threads, "; r < ", count, "; r += ", threads, ") {\n",
      Decompose(index, "r", gone, nest.dims, "    "), Lines(expression, "    "),
      "    acc = ", StepOf(op), "(acc, ", Last(expression), ");\n  }\n");
  if (threads == kWarp) {
    absl::StrAppend(&text, "  acc = OfWarp(acc, ", step, ");\n");
  } else if (threads == kThreads) {
    absl::StrAppend(&text, "  acc = OfBlock<", kThreads, ">(acc, ", step,
                    ");\n");
  }
  absl::StrAppend(
      &text, "  if (thread % ", threads, " == 0) y[", Place(kept_strides),
      "] = acc",
      op == "reduce_mean" ? absl::StrCat(" / ", type, "(", count, ")") : "",
      ";\n");
  return {text, CeilDiv(results * threads, kThreads), kThreads};
}

GeneratedKernel NormOf(const RowNormLoops& loops) {
  int64_t vector = kVectorBytes / ElementBytes(loops.type);
  while (loops.cols % vector != 0) vector /= 2;
  const int64_t vectors = loops.cols / vector;
  int threads = kWarp;
  while (threads < 1024 && threads < vectors) threads *= 2;
  const std::string type = TypeName(loops.type);
  int next = 0;
  const auto operand = [&](bool is_there, const char* qualifier) {
    return is_there
               ? absl::StrCat("static_cast<", qualifier, type, "*>(p[", next++,
                              "])")
               : absl::StrCat("static_cast<", qualifier, type, "*>(nullptr)");
  };
  std::vector<std::string> arguments = {
      operand(true, "const "), operand(loops.of_sum, "const "),
      operand(true, "const "), operand(loops.has_bias, "const "),
      operand(true, ""),       operand(loops.keeps_sum, "")};
  arguments.push_back(absl::StrFormat("%.9ef", loops.epsilon));
  return {absl::StrCat("  NormRow<", loops.cols, ", ", vector, ", ",
                       CeilDiv(vectors, threads), ", ", threads, ", ",
                       loops.centred ? "true" : "false", ">(block, ",
                       absl::StrJoin(arguments, ", "), ");\n"),
          loops.rows, threads};
}

// The dimensions n, c, h and w of an image as loops, in the order in which it
// lies in memory.
std::string EachPixel(const WindowLoops& l, int64_t* count) {
  std::vector<size_t> order = {0, 1, 2, 3};
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return l.y_strides[a] > l.y_strides[b];
  });
  *count = Elements(l.y_dims);
  return absl::StrCat(GridLoop("int64_t", *count),
                      Decompose("int64_t", "i", order, l.y_dims, "    "),
                      "    const int64_t h = i2 * ", l.stride[0], " - ",
                      l.begin[0], ", w = i3 * ", l.stride[1], " - ", l.begin[1],
                      ";\n");
}

std::string TapLoops(const WindowLoops& l) {
  return absl::StrCat(
      "    for (int r = 0; r < ", l.kernel[0],
      "; ++r) {\n      const int64_t ih = h + r * ", l.dilation[0],
      ";\n      if (ih < 0 || ih >= ", l.x_dims[2],
      ") continue;\n      for (int s = 0; s < ", l.kernel[1],
      "; ++s) {\n        const int64_t iw = w + s * ", l.dilation[1],
      ";\n        if (iw < 0 || iw >= ", l.x_dims[3],
      ") continue;\n        const auto* const from = x + i0 * ", l.x_strides[0],
      " + ih * ", l.x_strides[2], " + iw * ", l.x_strides[3], ";\n");
}

std::string ReadPointer(const char* name, proto::ElementType type,
                        int operand) {
  return absl::StrCat("  const auto* const ", name, " = static_cast<const ",
                      TypeName(type), "*>(p[", operand, "]);\n");
}

GeneratedKernel ConvOf(const WindowLoops& l) {
  const int64_t filters = l.y_dims[1], k = filters / l.group;
  const int64_t c = l.x_dims[1] / l.group;
  int64_t count = 0;
  std::string text = absl::StrCat(
      ReadPointer("x", l.type, 0), ReadPointer("weights", l.type, 1),
      l.has_bias ? ReadPointer("bias", l.type, 2) : "",
      YPointer(l.type, l.has_bias ? 3 : 2), EachPixel(l, &count),
      "    float sum = ", l.has_bias ? "bias[i1]" : "0", ";\n", TapLoops(l),
      "        const auto* const by = weights + (r * ", l.kernel[1], " + s) * ",
      c * filters, " + i1;\n        for (int64_t j = 0; j < ", c,
      "; ++j) sum += float(from[(i1 / ", k, " * ", c, " + j) * ",
      l.x_strides[1], "]) * float(by[j * ", filters,
      "]);\n      }\n    }\n    y[", Place(l.y_strides), "] = sum;\n  }\n");
  return {text, Blocks(count), kThreads};
}

GeneratedKernel PoolOf(const WindowLoops& l, bool maximum, bool count_padding) {
  int64_t count = 0;
  std::string text = absl::StrCat(
      ReadPointer("x", l.type, 0), YPointer(l.type, 1), EachPixel(l, &count),
      "    float best = ", maximum ? "Least<float>()" : "0", ", count = 0;\n");
  if (count_padding) {
    // Counts elements of the image and of its padding.
    absl::StrAppend(&text, "    for (int r = 0; r < ", l.kernel[0],
                    "; ++r) {\n      for (int s = 0; s < ", l.kernel[1],
                    "; ++s) {\n        count += h + r * ", l.dilation[0], " < ",
                    l.x_dims[2] + l.end[0], " && w + s * ", l.dilation[1],
                    " < ", l.x_dims[3] + l.end[1], ";\n      }\n    }\n");
  }
  absl::StrAppend(
      &text, TapLoops(l), count_padding ? "" : "        count += 1;\n",
      "        const float value = from[i1 * ", l.x_strides[1],
      "];\n        best = ", maximum ? "op_max(best, value)" : "best + value",
      ";\n      }\n    }\n    y[", Place(l.y_strides),
      "] = ", maximum ? "best" : "best / count", ";\n  }\n");
  return {text, Blocks(count), kThreads};
}

GeneratedKernel ProductOf(const ProductLoops& l) {
  // Large tiles read less, and small ones keep more of a GPU at work.
  constexpr int64_t kLarge = 128, kSmall = 64, kEnoughTiles = 128;
  const int64_t large =
      CeilDiv(l.m, kLarge) * CeilDiv(l.n, kLarge) * Elements(l.batch);
  const int64_t tile = large >= kEnoughTiles ? kLarge : kSmall;
  const int64_t rows = CeilDiv(l.m, tile), columns = CeilDiv(l.n, tile);
  const int64_t tiles = rows * columns;
  std::vector<size_t> loops(l.batch.size());
  std::iota(loops.begin(), loops.end(), 0);
  std::string text = absl::StrCat(
      ReadPointer("a", l.type, 0), ReadPointer("b", l.type, 1),
      l.has_bias ? ReadPointer("bias", l.type, 2)
                 : absl::StrCat("  const ", TypeName(l.type),
                                "* const bias = nullptr;\n"),
      YPointer(l.type, l.has_bias ? 3 : 2), "  const int64_t tile = block % ",
      tiles, ", batch = block / ", tiles, ";\n",
      Decompose("int64_t", "batch", loops, l.batch, "  "));
  absl::StrAppend(
      &text, "  Product<", tile, ", ", l.m, ", ", l.n, ", ", l.k, ", ", l.a_m,
      ", ", l.a_k, ", ", l.b_k, ", ", l.b_n, ", ", l.y_m, ", ", l.y_n, ">(a + ",
      Place(l.a_batch), ", b + ", Place(l.b_batch), ", bias, y + ",
      Place(l.y_batch), ", tile / ", columns, " * ", tile, ", tile % ", columns,
      " * ", tile, ", [](float v) { return ",
      l.activation == "relu"   ? "v < 0 ? 0.0f : v"
      : l.activation == "gelu" ? "0.5f * v * (1.0f + Erf(v * 0.70710678f))"
                               : "v",
      "; });\n");
  constexpr int64_t kDepth = 16;  // as in Product
  return {text, tiles * Elements(l.batch), kThreads,
          2 * kDepth * (tile + 4) * static_cast<int64_t>(sizeof(float))};
}

constexpr char kPredecessors[] =
#include "ops/lib/predecessors.inc"
    ;

constexpr char kHead[] = R"code(
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;

namespace std {
template <class T, class U> constexpr bool is_same_v = false;
template <class T> constexpr bool is_same_v<T, T> = true;
template <class T>
constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
template <class T>
constexpr bool is_integral_v =
    is_same_v<T, bool> || is_same_v<T, int8_t> || is_same_v<T, uint8_t> ||
    is_same_v<T, int16_t> || is_same_v<T, uint16_t> || is_same_v<T, int32_t> ||
    is_same_v<T, uint32_t> || is_same_v<T, int64_t> || is_same_v<T, uint64_t>;
template <class T> constexpr bool is_signed_v = T(-1) < T(0);
template <class T> struct numeric_limits {
  static T max() {
    return is_signed_v<T> ? T((uint64_t(1) << (8 * sizeof(T) - 1)) - 1)
                          : T(~uint64_t(0));
  }
  static T lowest() { return is_signed_v<T> ? T(-max() - 1) : T(0); }
  static T infinity() { return T(); }  // as the standard library has it
};
template <> struct numeric_limits<float> {
  static float infinity() { return __int_as_float(0x7f800000); }
  static float max() { return 3.402823466e38f; }
  static float lowest() { return -max(); }
};
template <> struct numeric_limits<double> {
  static double infinity() {
    return __longlong_as_double(0x7ff0000000000000ll);
  }
  static double max() { return 1.7976931348623157e308; }
  static double lowest() { return -max(); }
};
#define __builtin_inf() __longlong_as_double(0x7ff0000000000000ll)
#define __builtin_nan(text) __longlong_as_double(0x7ff8000000000000ll)
#define OPTRAIL_MATH(name)                                \
  inline float name(float a) { return ::name##f(a); }     \
  inline double name(double a) { return ::name(a); }
OPTRAIL_MATH(exp) OPTRAIL_MATH(log) OPTRAIL_MATH(sqrt) OPTRAIL_MATH(erf)
OPTRAIL_MATH(tanh) OPTRAIL_MATH(log1p) OPTRAIL_MATH(floor) OPTRAIL_MATH(ceil)
OPTRAIL_MATH(nearbyint) OPTRAIL_MATH(sin) OPTRAIL_MATH(cos) OPTRAIL_MATH(tan)
OPTRAIL_MATH(asin) OPTRAIL_MATH(acos) OPTRAIL_MATH(atan) OPTRAIL_MATH(sinh)
OPTRAIL_MATH(cosh) OPTRAIL_MATH(asinh) OPTRAIL_MATH(acosh) OPTRAIL_MATH(atanh)
#undef OPTRAIL_MATH
inline float pow(float a, float b) { return ::powf(a, b); }
inline double pow(double a, double b) { return ::pow(a, b); }
inline float fmod(float a, float b) { return ::fmodf(a, b); }
inline double fmod(double a, double b) { return ::fmod(a, b); }
inline bool isinf(double a) {
  return a == numeric_limits<double>::infinity() ||
         a == -numeric_limits<double>::infinity();
}
}  // namespace std

// Rounds to nearest even.
struct bf16 {
  uint16_t bits;
  bf16() = default;
  inline bf16(float value) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  }
  inline operator float() const {
    return __uint_as_float(uint32_t(bits) << 16);
  }
};

template <class T> inline T Exp(T a) { return std::exp(a); }
template <class T> inline T Erf(T a) { return std::erf(a); }
template <class T> inline T Tanh(T a) { return std::tanh(a); }

template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Vector {
  T at[kCount];
};
template <int kCount, class T>
inline Vector<T, kCount> LoadVector(const T* from) {
  return *reinterpret_cast<const Vector<T, kCount>*>(from);
}

template <class T, class Step> inline T OfWarp(T value, Step step) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    value = step(value, T(__shfl_xor_sync(~0u, value, lanes)));
  }
  return value;
}
// All threads get the result.
template <int kThreads, class T, class Step>
inline T OfBlock(T value, Step step) {
  value = OfWarp(value, step);
  if constexpr (kThreads > 32) {
    __shared__ T warps[kThreads / 32];
    __syncthreads();
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = warps[0];
#pragma unroll
    for (int w = 1; w < kThreads / 32; ++w) value = step(value, warps[w]);
  }
  return value;
}
)code";

constexpr char kBlocks[] = R"code(
// y = norm(x + r) * scale + bias of the block's row, which its threads hold.
template <int kColumns, int kVector, int kItems, int kThreads, bool kCentred,
          class T>
inline void NormRow(unsigned block, const T* x, const T* r, const T* scale, const T* bias, T* y,
                    T* sum, float epsilon) {
  const int64_t row = int64_t(block) * kColumns;
  float value[kItems][kVector];
  float total = 0;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const int c = (i * kThreads + threadIdx.x) * kVector;
    if (c >= kColumns) continue;
    const auto a = LoadVector<kVector>(x + row + c);
#pragma unroll
    for (int l = 0; l < kVector; ++l) value[i][l] = a.at[l];
    if (r != nullptr) {
      const auto b = LoadVector<kVector>(r + row + c);
#pragma unroll
      for (int l = 0; l < kVector; ++l) value[i][l] += float(b.at[l]);
    }
    if (sum != nullptr) {
      Vector<T, kVector> s;
#pragma unroll
      for (int l = 0; l < kVector; ++l) s.at[l] = value[i][l];
      *reinterpret_cast<Vector<T, kVector>*>(sum + row + c) = s;
    }
#pragma unroll
    for (int l = 0; l < kVector; ++l) total += value[i][l];
  }
  const auto add = [](float a, float b) { return a + b; };
  const float mean =
      kCentred ? OfBlock<kThreads>(total, add) / kColumns : 0.0f;
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if ((i * kThreads + threadIdx.x) * kVector >= kColumns) continue;
#pragma unroll
    for (int l = 0; l < kVector; ++l) {
      squares += (value[i][l] - mean) * (value[i][l] - mean);
    }
  }
  const float factor =
      1 / std::sqrt(OfBlock<kThreads>(squares, add) / kColumns + epsilon);
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const int c = (i * kThreads + threadIdx.x) * kVector;
    if (c >= kColumns) continue;
    const auto w = LoadVector<kVector>(scale + c);
    Vector<T, kVector> to;
#pragma unroll
    for (int l = 0; l < kVector; ++l) {
      float v = (value[i][l] - mean) * factor * float(w.at[l]);
      if (bias != nullptr) v += float(bias[c + l]);
      to.at[l] = v;
    }
    *reinterpret_cast<Vector<T, kVector>*>(y + row + c) = to;
  }
}

// A tile of kTile x kTile of f(a b + bias) by 256 threads, in f32: what no
// operator has a kernel for. A thread has quads of rows and columns, so that it
// reads four factors at a time.
template <int kTile, int64_t kM, int64_t kN, int64_t kK, int64_t kAM,
          int64_t kAK, int64_t kBK, int64_t kBN, int64_t kYM, int64_t kYN,
          class T, class F>
inline void Product(const T* a, const T* b, const T* bias, T* y, int64_t row,
                    int64_t column, F f) {
  constexpr int kDepth = 16, kQuads = kTile / 64, kEach = kTile / 16;
  __shared__ alignas(16) float left[kDepth][kTile + 4];
  __shared__ alignas(16) float right[kDepth][kTile + 4];
  float sums[kEach][kEach] = {};
  const int down = threadIdx.x / 16 * 4, across = threadIdx.x % 16 * 4;
  for (int64_t k = 0; k < kK; k += kDepth) {
#pragma unroll
    for (int i = 0; i < kTile / 16; ++i) {
      const int e = i * 256 + threadIdx.x;
      // Neighbouring threads read neighbours in memory.
      const int am = kAK == 1 ? e / kDepth : e % kTile;
      const int ak = kAK == 1 ? e % kDepth : e / kTile;
      left[ak][am] = row + am < kM && k + ak < kK
                         ? float(a[(row + am) * kAM + (k + ak) * kAK])
                         : 0.0f;
      const int bn = kBN == 1 ? e % kTile : e / kDepth;
      const int bk = kBN == 1 ? e / kTile : e % kDepth;
      right[bk][bn] = column + bn < kN && k + bk < kK
                          ? float(b[(k + bk) * kBK + (column + bn) * kBN])
                          : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      float u[kEach], v[kEach];
#pragma unroll
      for (int q = 0; q < kQuads; ++q) {
        const auto us = LoadVector<4>(&left[d][down + 64 * q]);
        const auto vs = LoadVector<4>(&right[d][across + 64 * q]);
#pragma unroll
        for (int l = 0; l < 4; ++l) {
          u[4 * q + l] = us.at[l];
          v[4 * q + l] = vs.at[l];
        }
      }
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) sums[i][j] += u[i] * v[j];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int64_t m = row + down + i / 4 * 64 + i % 4;
      const int64_t n = column + across + j / 4 * 64 + j % 4;
      if (m >= kM || n >= kN) continue;
      const float sum = sums[i][j] + (bias == nullptr ? 0.0f : float(bias[n]));
      y[m * kYM + n * kYN] = f(sum);
    }
  }
}
)code";

class Cuda : public LoopPrinter {
 public:
  GeneratedKernel Loop(const Expression& expression, const Dims& dims,
                       const Dims& y_strides, int y_operand) const override {
    const LoopText loop = LoopOf(expression, dims, y_strides, y_operand, 0);
    return {loop.text, loop.blocks, kThreads};
  }
  GeneratedKernel Concat(const std::vector<ConcatPart>& parts,
                         const Dims& y_strides, int y_operand) const override {
    GeneratedKernel kernel;
    kernel.threads = kThreads;
    for (const ConcatPart& part : parts) {
      const LoopText loop = LoopOf(part.expression, part.dims, y_strides,
                                   y_operand, part.y_offset);
      absl::StrAppend(&kernel.source, "  {\n", loop.text, "  }\n");
      kernel.blocks = std::max(kernel.blocks, loop.blocks);
    }
    return kernel;
  }
  GeneratedKernel Reduce(const std::string& op, const Expression& expression,
                         const Dims& dims, const std::vector<bool>& reduced,
                         const Dims& y_strides, int y_operand,
                         proto::ElementType y_type) const override {
    return ReduceOf(op, expression, dims, reduced, y_strides, y_operand,
                    y_type);
  }
  GeneratedKernel RowNorm(const RowNormLoops& loops) const override {
    return NormOf(loops);
  }
  GeneratedKernel Conv(const WindowLoops& loops) const override {
    return ConvOf(loops);
  }
  GeneratedKernel Pool(const WindowLoops& loops, bool maximum,
                       bool count_padding) const override {
    return PoolOf(loops, maximum, count_padding);
  }
  GeneratedKernel Product(const ProductLoops& loops) const override {
    return ProductOf(loops);
  }
  GeneratedKernel Merge(
      const std::vector<GeneratedKernel>& kernels,
      const std::vector<std::vector<int>>& operands) const override {
    GeneratedKernel merged;
    merged.threads = kernels[0].threads;
    merged.blocks = 0;
    merged.source =
        "  const unsigned every = block;\n  void* const* const all = p;\n";
    for (size_t k = 0; k < kernels.size(); ++k) {
      OPTRAIL_CHECK(kernels[k].threads == merged.threads);
      std::vector<std::string> own;
      for (const int operand : operands[k]) {
        own.push_back(absl::StrCat("all[", operand, "]"));
      }
      const int64_t end = merged.blocks + kernels[k].blocks;
      absl::StrAppend(
          &merged.source, "  if (every >= ", merged.blocks, " && every < ", end,
          ") {\n  const unsigned block = every - ", merged.blocks,
          ", blocks = ", kernels[k].blocks, ";\n  void* const p[] = {",
          absl::StrJoin(own, ", "), "};\n", kernels[k].source, "  }\n");
      merged.blocks = end;
      merged.shared_bytes += kernels[k].shared_bytes;
    }
    return merged;
  }

  std::string File(const std::vector<GeneratedKernel>& kernels,
                   const std::vector<int>& operands) const override {
    OPTRAIL_CHECK(kernels.size() == operands.size());
    std::string text = absl::StrCat(kHead, kPredecessors, SharedFunctions(),
                                    kBlocks, ElementwiseFunctions(kernels));
    for (size_t k = 0; k < kernels.size(); ++k) {
      std::vector<std::string> parameters, names;
      for (int i = 0; i < operands[k]; ++i) {
        names.push_back(absl::StrCat("p", i));
        parameters.push_back(absl::StrCat("void* p", i));
      }
      absl::StrAppend(
          &text, "\nextern \"C\" __global__ void __launch_bounds__(",
          kernels[k].threads, ") ", KernelName(k), "(",
          absl::StrJoin(parameters, ", "),
          ") {\n  AwaitPredecessors();\n  void* const p[] = {",
          absl::StrJoin(names, ", "),
          "};\n  const unsigned block = blockIdx.x, blocks = gridDim.x;\n",
          kernels[k].source, "}\n");
    }
    return text;
  }
};

}  // namespace

const LoopPrinter& CudaPrinter() {
  static const auto* const printer = new Cuda();
  return *printer;
}

}  // namespace optrail::graph
