// Expressions, and what both printers of loops have in common.

#include "graph/runner/codegen_text.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace optrail::graph {
namespace {

// Fewer neighbours are no work for a vector.
constexpr int64_t kLeastColumns = 8;

}  // namespace

std::string TypeName(proto::ElementType type) {
  if (type == proto::ELEMENT_F64) return "double";
  if (type == proto::ELEMENT_F32) return "float";
  if (type == proto::ELEMENT_BF16) return "bf16";
  if (type == proto::ELEMENT_BOOL) return "bool";
  return absl::StrCat(IsUnsigned(type) ? "u" : "", "int",
                      8 * ElementBytes(type), "_t");
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

std::string ValueName(proto::ElementType type) {
  return type == proto::ELEMENT_BF16 ? "float" : TypeName(type);
}

void Nest::Reorder(const std::vector<int>& order) {
  const auto apply = [&](auto& values) {
    auto old = values;
    values.clear();
    for (const int d : order) values.push_back(old[d]);
  };
  apply(dims);
  apply(reduced);
  for (Dims* s : strides) apply(*s);
}

void Nest::Erase(size_t d) {
  dims.erase(dims.begin() + d);
  reduced.erase(reduced.begin() + d);
  for (Dims* s : strides) s->erase(s->begin() + d);
}

void Nest::Collapse() {
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

Nest NestOfLoop(Expression& expression, const Dims& dims, Dims& y_strides) {
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
  return nest;
}

ReductionNest NestOfReduction(Expression& expression, const Dims& dims,
                              const std::vector<bool>& reduced,
                              Dims& y_strides) {
  Nest nest{dims, {&y_strides}, reduced};
  Dims* innermost = nullptr;  // of the first load, which decides the order
  for (auto& line : expression.lines()) {
    if (line.operand < 0) continue;
    nest.strides.push_back(&line.strides);
    if (innermost == nullptr) innermost = &line.strides;
  }
  OPTRAIL_CHECK(innermost != nullptr);
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
  return {nest, first, neighbours >= 0 && first < nest.dims.size()};
}

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
std::string Lines(const Expression& expression, const std::string& indent,
                  const std::vector<bool>& in_vectors) {
  std::string text;
  const auto& lines = expression.lines();
  for (size_t v = 0; v < lines.size(); ++v) {
    const Expression::Line& line = lines[v];
    std::string value;
    if (v < in_vectors.size() && in_vectors[v]) {
      value = absl::StrCat("q", v, ".at[l]");
    } else if (line.operand >= 0) {
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
    absl::StrAppend(&text, indent, "const ", ValueName(line.type), " v", v,
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

bool HasCode(proto::ElementType type) {
  return type != proto::ELEMENT_F16 && type != proto::ELEMENT_TYPE_UNSPECIFIED;
}

int Expression::Load(int operand, proto::ElementType type, Dims strides,
                     int64_t offset) {
  Line line;
  line.operand = operand;
  line.offset = offset;
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
        absl::StrFormat("%s(%.17g)", ValueName(line.type), array.reals[0]);
  } else {
    line.literal =
        absl::StrCat(ValueName(line.type), "(",
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

}  // namespace optrail::graph
