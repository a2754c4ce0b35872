#include "graph/runner/codegen.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "graph/ir/elementwise.h"

namespace optrail::graph {
namespace {

// Iterations below which a loop stays on one thread.
constexpr int64_t kLeastParallel = 1 << 14;
// Fewer neighbours are no work for a vector.
constexpr int64_t kLeastColumns = 8;

std::string TypeName(proto::ElementType type) {
  switch (type) {
    case proto::ELEMENT_F64:
      return "double";
    case proto::ELEMENT_F32:
      return "float";
    case proto::ELEMENT_BOOL:
      return "bool";
    case proto::ELEMENT_I64:
      return "int64_t";
    case proto::ELEMENT_I32:
      return "int32_t";
    case proto::ELEMENT_I16:
      return "int16_t";
    case proto::ELEMENT_I8:
      return "int8_t";
    case proto::ELEMENT_U64:
      return "uint64_t";
    case proto::ELEMENT_U32:
      return "uint32_t";
    case proto::ELEMENT_U16:
      return "uint16_t";
    default:
      return "uint8_t";
  }
}

// "i0 * 64 + i1"
std::string Place(const Dims& strides) {
  std::vector<std::string> terms;
  for (size_t d = 0; d < strides.size(); ++d) {
    if (strides[d] == 0) continue;
    terms.push_back(strides[d] == 1 ? absl::StrCat("i", d)
                                    : absl::StrCat("i", d, " * ", strides[d]));
  }
  return terms.empty() ? "0" : absl::StrJoin(terms, " + ");
}

// The loops in the order `order`, those of one iteration left out and
// neighbours that walk through memory as one joined. `extra` are strides that
// are no load's.
struct Nest {
  Dims dims;
  std::vector<Dims*> strides;
  std::vector<bool> reduced;

  void Reorder(const std::vector<int>& order) {
    const auto apply = [&](auto& values) {
      auto old = values;
      values.clear();
      for (const int d : order) values.push_back(old[d]);
    };
    apply(dims);
    apply(reduced);
    for (Dims* s : strides) apply(*s);
  }

  void Erase(size_t d) {
    dims.erase(dims.begin() + d);
    reduced.erase(reduced.begin() + d);
    for (Dims* s : strides) s->erase(s->begin() + d);
  }

  void Collapse() {
    for (size_t d = dims.size(); d-- > 0;) {
      if (dims[d] == 1) Erase(d);
    }
    for (size_t d = dims.size(); d-- > 1;) {
      bool joins = reduced[d] == reduced[d - 1];
      for (const Dims* s : strides) {
        joins = joins && (*s)[d - 1] == (*s)[d] * dims[d];
      }
      if (!joins) continue;
      dims[d - 1] *= dims[d];
      for (Dims* s : strides) (*s)[d - 1] = (*s)[d];
      Erase(d);
    }
    if (dims.empty()) {
      dims.push_back(1);
      reduced.push_back(false);
      for (Dims* s : strides) s->push_back(0);
    }
  }
};

std::string Pointers(const Expression& expression) {
  std::string text;
  std::vector<int> seen;
  for (const Expression::Line& line : expression.lines()) {
    if (line.operand < 0 ||
        std::find(seen.begin(), seen.end(), line.operand) != seen.end()) {
      continue;
    }
    seen.push_back(line.operand);
    const std::string type = TypeName(line.type);
    absl::StrAppend(&text, "  const auto* const a", line.operand,
                    " = static_cast<const ", type, "*>(p[", line.operand,
                    "]);\n");
  }
  return text;
}

// The values of the expression at i0, i1, ...; the last one is `v<n>`.
std::string Lines(const Expression& expression, const std::string& indent) {
  std::string text;
  const auto& lines = expression.lines();
  for (size_t v = 0; v < lines.size(); ++v) {
    const Expression::Line& line = lines[v];
    std::string value;
    if (line.operand >= 0) {
      std::string place = Place(line.strides);
      if (line.index >= 0) {
        absl::StrAppend(&place, " + Index(v", line.index, ", ", line.size,
                        ") * ", line.stride);
      }
      value = absl::StrCat("a", line.operand, "[", place, "]");
    } else if (!line.literal.empty()) {
      value = line.literal;
    } else if (line.op == "cast") {
      value = absl::StrCat("Cast<", TypeName(line.type), ">(v", line.inputs[0],
                           ")");
    } else {
      std::vector<std::string> inputs;
      for (const int input : line.inputs) {
        inputs.push_back(absl::StrCat("v", input));
      }
      value =
          absl::StrCat("op_", line.op, "(", absl::StrJoin(inputs, ", "), ")");
    }
    absl::StrAppend(&text, indent, "const ", TypeName(line.type), " v", v,
                    " = ", value, ";\n");
  }
  return text;
}

std::string Last(const Expression& expression) {
  return absl::StrCat("v", expression.lines().size() - 1);
}

proto::ElementType LastType(const Expression& expression) {
  return expression.lines().back().type;
}

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

std::string StepOf(const std::string& op) {
  if (op == "reduce_max") return "op_max";
  if (op == "reduce_min") return "op_min";
  if (op == "reduce_prod") return "op_mul";
  return "op_add";
}

std::string StartOf(const std::string& op, const std::string& type) {
  const std::string limits = absl::StrCat("std::numeric_limits<", type, ">::");
  if (op == "reduce_max") {
    return absl::StrCat("Least<", type, ">()");
  }
  if (op == "reduce_min") return absl::StrCat("Most<", type, ">()");
  return op == "reduce_prod" ? "1" : "0";
}

}  // namespace

bool HasCode(proto::ElementType type) {
  return type != proto::ELEMENT_F16 && type != proto::ELEMENT_BF16 &&
         type != proto::ELEMENT_TYPE_UNSPECIFIED;
}

int Expression::Load(int operand, proto::ElementType type, Dims strides) {
  Line line;
  line.operand = operand;
  line.type = type;
  line.strides = std::move(strides);
  lines_.push_back(std::move(line));
  return static_cast<int>(lines_.size()) - 1;
}

int Expression::Gather(int operand, proto::ElementType type, Dims strides,
                       int index, int64_t stride, int64_t size) {
  const int value = Load(operand, type, std::move(strides));
  lines_[value].index = index;
  lines_[value].stride = stride;
  lines_[value].size = size;
  return value;
}

int Expression::Emit(const Node& node, const std::vector<int>& inputs,
                     proto::ElementType type) {
  Line line;
  line.op = node.op;
  line.inputs = inputs;
  line.type = type;
  lines_.push_back(std::move(line));
  return static_cast<int>(lines_.size()) - 1;
}

int Expression::Literal(const Array& array) {
  Line line;
  line.type = array.type.type;
  if (!array.is_real()) {
    line.literal = absl::StrCat(TypeName(line.type), "(",
                                static_cast<uint64_t>(array.integers[0]), "u)");
  } else if (std::isfinite(array.reals[0])) {
    line.literal =
        absl::StrFormat("%s(%.17g)", TypeName(line.type), array.reals[0]);
  } else {
    line.literal =
        absl::StrCat(TypeName(line.type), "(",
                     std::isnan(array.reals[0]) ? "__builtin_nan(\"\")"
                     : array.reals[0] > 0       ? "__builtin_inf()"
                                                : "-__builtin_inf()",
                     ")");
  }
  lines_.push_back(std::move(line));
  return static_cast<int>(lines_.size()) - 1;
}

bool Expression::gathers() const {
  return std::any_of(lines_.begin(), lines_.end(),
                     [](const Line& line) { return line.index >= 0; });
}

std::string LoopSource(Expression expression, Dims dims, Dims y_strides,
                       int y_operand) {
  Nest nest{dims, {&y_strides}, std::vector<bool>(dims.size(), false)};
  for (auto& line : expression.lines()) {
    if (line.operand >= 0) nest.strides.push_back(&line.strides);
  }
  std::vector<int> order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return y_strides[a] > y_strides[b]; });
  nest.Reorder(order);
  nest.Collapse();
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
                  Place(y_strides), "] = ", Last(expression), ";\n");
  for (size_t d = nest.dims.size(); d-- > 1;) {
    absl::StrAppend(&text, std::string(2 * d + 2, ' '), "}\n");
  }
  return text + OuterEnd(nest.dims[0], all);
}

namespace {

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
                          const Dims& y_strides, int y_operand) {
  const std::string type = TypeName(LastType(expression));
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
  std::string text = absl::StrCat(Pointers(expression),
                                  YPointer(LastType(expression), y_operand));
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

}  // namespace

std::string ReduceSource(const std::string& op, Expression expression,
                         Dims dims, const std::vector<bool>& reduced,
                         Dims y_strides, int y_operand) {
  Nest nest{dims, {&y_strides}, reduced};
  Dims* innermost = nullptr;  // of the first load, which decides the order
  for (auto& line : expression.lines()) {
    if (line.operand < 0) continue;
    nest.strides.push_back(&line.strides);
    if (innermost == nullptr) innermost = &line.strides;
  }
  OPTRAIL_CHECK(innermost != nullptr);
  // A dimension along which neighbours have results of their own.
  int neighbours = -1;
  for (size_t d = 0; d < dims.size(); ++d) {
    bool loads = false;
    for (const Dims* s : nest.strides) loads |= s != &y_strides && (*s)[d] == 1;
    if (!reduced[d] && y_strides[d] == 1 && loads && dims[d] >= kLeastColumns) {
      neighbours = static_cast<int>(d);
    }
  }
  std::vector<int> order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  const Dims walk = *innermost;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return std::tuple(a == neighbours, bool(reduced[a]), -walk[a]) <
           std::tuple(b == neighbours, bool(reduced[b]), -walk[b]);
  });
  nest.Reorder(order);
  nest.Collapse();
  const size_t first =
      std::find(nest.reduced.begin(), nest.reduced.end(), true) -
      nest.reduced.begin();
  return ReductionText(op, expression, nest, first,
                       neighbours >= 0 && first < nest.dims.size(), y_strides,
                       y_operand);
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

}  // namespace optrail::graph
