#include "graph/runner/codegen.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/runner/codegen_text.h"
#include "graph/runner/cpp_codegen.h"

namespace optrail::graph {
namespace {

// Iterations below which a loop stays on one thread.
constexpr int64_t kLeastParallel = 1 << 14;

std::string For(size_t d, int64_t size, size_t depth) {
  return absl::StrFormat("%sfor (int64_t i%d = 0; i%d < %d; ++i%d) {\n",
                         std::string(2 * depth, ' '), d, d, size, d);
}

// Before loops whose iterations write no more than what they alone read: a
// result may stand in the place of an operand, where GCC would not vectorize.
constexpr char kIndependent[] = "#pragma GCC ivdep\n";

// The outermost loop, shared out where there is enough to do.
std::string Outer(int64_t size, int64_t all, const char* pragma = "") {
  return all >= kLeastParallel && size > 1
             ? absl::StrCat("  call.ParallelFor(", size,
                            ", [&](int64_t i0) {\n")
             : absl::StrCat("  [&] {\n", pragma, "  for (int64_t i0 = 0; i0 < ",
                            size, "; ++i0) {\n");
}
std::string OuterEnd(int64_t size, int64_t all) {
  return all >= kLeastParallel && size > 1 ? "  });\n" : "  } }();\n";
}

std::string YPointer(proto::ElementType type, int operand) {
  return absl::StrCat("  auto* const y = static_cast<", TypeName(type), "*>(p[",
                      operand, "]);\n");
}

std::string LoopSource(Expression expression, const Dims& dims, Dims y_strides,
                       int y_operand, int64_t y_offset) {
  Nest nest = NestOfLoop(expression, dims, y_strides);
  // One long loop is cut, so that it can be shared out.
  if (nest.dims.size() == 1 && nest.dims[0] % 1024 == 0 &&
      nest.dims[0] >= kLeastParallel) {
    nest.dims = {nest.dims[0] / 1024, 1024};
    for (Dims* s : nest.strides) *s = {(*s)[0] * 1024, (*s)[0]};
  }
  const int64_t all = Elements(nest.dims);
  std::string text = absl::StrCat(
      Pointers(expression), YPointer(LastType(expression), y_operand),
      Outer(nest.dims[0], all, nest.dims.size() == 1 ? kIndependent : ""));
  for (size_t d = 1; d < nest.dims.size(); ++d) {
    if (d + 1 == nest.dims.size()) text += kIndependent;
    text += For(d, nest.dims[d], d + 1);
  }
  const std::string indent(2 * nest.dims.size() + 2, ' ');
  absl::StrAppend(&text, Lines(expression, indent), indent, "y[",
                  y_offset == 0 ? "" : absl::StrCat(y_offset, " + "),
                  Place(y_strides), "] = ", Last(expression), ";\n");
  for (size_t d = nest.dims.size(); d-- > 1;) {
    absl::StrAppend(&text, std::string(2 * d + 2, ' '), "}\n");
  }
  return text + OuterEnd(nest.dims[0], all);
}

// Sums in lanes where the innermost loop is a reduced one, which a compiler
// does not do on its own, since it changes the order.
std::string InnerReduction(const Expression& e, const std::string& step,
                           const std::string& start, const std::string& type,
                           const Nest& nest, size_t first) {
  constexpr int64_t kLanes = 16;
  const size_t last = nest.dims.size() - 1;
  const int64_t size = nest.dims[last];
  const bool lanes = size >= 2 * kLanes;
  std::string text = absl::StrCat("    ", type, " acc = ", start, ";\n");
  if (lanes) {
    absl::StrAppend(&text, "    ", type, " lane[", kLanes,
                    "];\n    for (auto& l : lane) l = ", start, ";\n");
  }
  for (size_t d = first; d < last; ++d) text += For(d, nest.dims[d], 2);
  const int64_t whole = lanes ? size / kLanes * kLanes : 0;
  const std::string body = Lines(e, "        ");
  if (lanes) {
    absl::StrAppend(&text, "    for (int64_t j = 0; j < ", whole,
                    "; j += ", kLanes, ") {\n      for (int64_t l = 0; l < ",
                    kLanes, "; ++l) {\n        const int64_t i", last,
                    " = j + l;\n", body, "        lane[l] = ", step,
                    "(lane[l], ", Last(e), ");\n      }\n    }\n");
  }
  if (whole < size) {
    absl::StrAppend(&text, "    for (int64_t i", last, " = ", whole, "; i",
                    last, " < ", size, "; ++i", last, ") {\n", body,
                    "        acc = ", step, "(acc, ", Last(e), ");\n    }\n");
  }
  for (size_t d = first; d < last; ++d) text += "    }\n";
  if (lanes) {
    absl::StrAppend(&text, "    for (const auto l : lane) acc = ", step,
                    "(acc, l);\n");
  }
  return text;
}

// Where neighbours in memory have a result each, rows are added to a row of
// results: the loop within is over neighbours. `first` to the one before the
// last of the nest are reduced.
constexpr int64_t kMostColumns = 512;

std::string RowReduction(const Expression& e, const std::string& step,
                         const std::string& start, const std::string& type,
                         const Nest& nest, size_t first,
                         const std::string& result) {
  const size_t last = nest.dims.size() - 1;
  const int64_t size = nest.dims[last];
  const int64_t columns = std::min(size, kMostColumns);
  const std::string end =
      size % columns == 0 ? absl::StrCat("from + ", columns)
                          : absl::StrCat("from + ", columns, " < ", size,
                                         " ? from + ", columns, " : ", size);
  const std::string loop = absl::StrCat("for (int64_t i", last, " = from; i",
                                        last, " < end; ++i", last, ") ");
  const std::string acc = absl::StrCat("acc[i", last, " - from]");
  std::string text = absl::StrCat(
      "    for (int64_t from = 0; from < ", size, "; from += ", columns,
      ") {\n    const int64_t end = ", end, ";\n    ", type, " acc[", columns,
      "];\n    ", loop, acc, " = ", start, ";\n");
  for (size_t d = first; d < last; ++d) text += For(d, nest.dims[d], 2);
  absl::StrAppend(&text, "    ", loop, "{\n", Lines(e, "      "), "      ", acc,
                  " = ", step, "(", acc, ", ", Last(e), ");\n    }\n");
  for (size_t d = first; d < last; ++d) text += "    }\n";
  return absl::StrCat(text, "    ", loop, result, "    }\n");
}

// Loops in which those from `first` on are reduced, but for the last one if
// `by_rows`.
std::string ReductionText(const std::string& op, const Expression& expression,
                          const Nest& nest, size_t first, bool by_rows,
                          const Dims& y_strides, int y_operand,
                          proto::ElementType y_type) {
  const std::string type = ValueName(LastType(expression));
  const std::string step = StepOf(op), start = StartOf(op, type);
  const int64_t all = Elements(nest.dims);
  const size_t end = nest.dims.size() - (by_rows ? 1 : 0);
  int64_t count = 1;
  for (size_t d = first; d < end; ++d) count *= nest.dims[d];
  const auto stored = [&](const std::string& sum, const Dims& strides) {
    return absl::StrCat(
        "y[", Place(strides), "] = ", sum,
        op == "reduce_mean" ? absl::StrCat(" / ", type, "(", count, ")") : "",
        ";\n");
  };
  std::string text =
      absl::StrCat(Pointers(expression), YPointer(y_type, y_operand));
  if (first == 0) {  // one result, or one row of them
    text += "  {\n";
  } else {
    text += Outer(nest.dims[0], all);
    for (size_t d = 1; d < first; ++d) text += For(d, nest.dims[d], 2);
  }
  Dims strides(y_strides.begin(), y_strides.begin() + first);
  if (by_rows) {
    strides.resize(end, 0);
    strides.push_back(1);
    const std::string sum = absl::StrCat("acc[i", end, " - from]");
    text += RowReduction(expression, step, start, type, nest, first,
                         stored(sum, strides));
  } else {
    text += first == nest.dims.size()
                ? absl::StrCat(Lines(expression, "    "), "    const ", type,
                               " acc = ", Last(expression), ";\n")
                : InnerReduction(expression, step, start, type, nest, first);
    text += absl::StrCat("    ", stored("acc", strides));
  }
  for (size_t d = 1; d < first; ++d) text += "    }\n";
  return text + (first == 0 ? "  }\n" : OuterEnd(nest.dims[0], all));
}

std::string ReduceSource(const std::string& op, Expression expression,
                         const Dims& dims, const std::vector<bool>& reduced,
                         Dims y_strides, int y_operand,
                         proto::ElementType y_type) {
  const ReductionNest of =
      NestOfReduction(expression, dims, reduced, y_strides);
  return ReductionText(op, expression, of.nest, of.first, of.by_rows, y_strides,
                       y_operand, y_type);
}

std::string RowNormSource(const RowNormLoops& loops) {
  const int64_t cols = loops.cols;
  int next = 0;
  std::string text;
  const auto row = [&](const char* name, bool is_written) {
    const char* const type = is_written ? "float" : "const float";
    absl::StrAppend(&text, "  auto* const ", name, " = static_cast<", type,
                    "*>(p[", next++, "]);\n");
  };
  const auto at_row = [&](const char* type, const char* to, const char* from) {
    return absl::StrCat("    ", type, "* const ", to, " = ", from, " + i0 * ",
                        cols, ";\n");
  };
  const std::string each = absl::StrCat(
      kIndependent, "    for (int64_t j = 0; j < ", cols, "; ++j) ");
  row("x", false);
  if (loops.of_sum) row("r", false);
  row("scale", false);
  if (loops.has_bias) row("bias", false);
  row("y", true);
  if (loops.keeps_sum) row("sum", true);
  absl::StrAppend(&text, Outer(loops.rows, loops.rows * cols),
                  at_row("float", "b", "y"));
  if (loops.of_sum) {
    absl::StrAppend(&text, at_row("const float", "c", "x"),
                    at_row("const float", "d", "r"),
                    at_row("float", "a", loops.keeps_sum ? "sum" : "y"), each,
                    "a[j] = c[j] + d[j];\n");
  } else {
    text += at_row("const float", "a", "x");
  }
  absl::StrAppend(
      &text, "    const float mean = ",
      loops.centred ? absl::StrCat("Total(a, ", cols, ") / ", cols) : "0",
      ";\n", "    const float factor = 1 / std::sqrt(Squares(a, mean, ", cols,
      ") / ", cols, absl::StrFormat(" + %.9ef);\n", loops.epsilon), each,
      "b[j] = (a[j] - mean) * factor * scale[j]",
      loops.has_bias ? " + bias[j]" : "", ";\n",
      OuterEnd(loops.rows, loops.rows * cols));
  return text;
}

class Cpp : public LoopPrinter {
 public:
  GeneratedKernel Loop(const Expression& expression, const Dims& dims,
                       const Dims& y_strides, int y_operand) const override {
    return {LoopSource(expression, dims, y_strides, y_operand, 0)};
  }
  GeneratedKernel Concat(const std::vector<ConcatPart>& parts,
                         const Dims& y_strides, int y_operand) const override {
    GeneratedKernel kernel;
    for (const ConcatPart& part : parts) {
      absl::StrAppend(&kernel.source, "  {\n",
                      LoopSource(part.expression, part.dims, y_strides,
                                 y_operand, part.y_offset),
                      "  }\n");
    }
    return kernel;
  }
  GeneratedKernel Reduce(const std::string& op, const Expression& expression,
                         const Dims& dims, const std::vector<bool>& reduced,
                         const Dims& y_strides, int y_operand,
                         proto::ElementType y_type) const override {
    return {ReduceSource(op, expression, dims, reduced, y_strides, y_operand,
                         y_type)};
  }
  GeneratedKernel RowNorm(const RowNormLoops& loops) const override {
    if (loops.type != proto::ELEMENT_F32) return {};
    return {RowNormSource(loops)};
  }
  GeneratedKernel Conv(const WindowLoops& loops) const override {
    if (loops.type != proto::ELEMENT_F32) return {};
    return {CppConvSource(loops)};
  }
  GeneratedKernel Pool(const WindowLoops& loops, bool maximum,
                       bool count_padding) const override {
    if (loops.type != proto::ELEMENT_F32) return {};
    return {CppPoolSource(loops, maximum, count_padding)};
  }
  GeneratedKernel Product(const ProductLoops& loops) const override {
    return {};
  }
  std::string File(const std::vector<GeneratedKernel>& kernels,
                   const std::vector<int>& operands) const override {
    return CppFile(kernels);
  }
};

}  // namespace

const LoopPrinter& CppPrinter() {
  static const auto* const printer = new Cpp();
  return *printer;
}

std::string KernelName(size_t number) { return absl::StrCat("kernel", number); }

}  // namespace optrail::graph
