#include "graph/fusion/expand.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace optrail::graph {
namespace {

// Pairs that a node may compare.
constexpr int64_t kMostPairs = int64_t{1} << 26;
constexpr int64_t kMostAlongAxis = 4096;
// Inputs of a concatenation: a kernel has no room for the addresses of more.
constexpr size_t kMostParts = 128;

class Expander {
 public:
  Expander(const Graph& graph, const Node& node, Copier& copier)
      : graph_(graph), node_(node), copier_(copier), to_(copier.copy()) {}

  absl::StatusOr<std::vector<int>> Run() {
    std::vector<int> results = Results();
    if (!status_.ok()) return status_;
    return results;
  }

 private:
  using Values = std::vector<int>;

  Values Results() {
    const std::string& op = node_.op;
    const size_t rank = dims(node_.inputs[0]).size();
    if (op == "conv" || op == "max_pool" || op == "avg_pool") {
      return rank == 3 ? Widened() : Values{};
    }
    if (op == "conv_transpose") {
      return rank == 3 || rank == 4 ? ConvTranspose() : Values{};
    }
    if (op == "concat") {
      return node_.inputs.size() > kMostParts ? Concat() : Values{};
    }
    if (op == "softmax") {
      return node_.Int("axis") + 1 < static_cast<int64_t>(rank) ? Softmax()
                                                                : Values{};
    }
    if (op == "arg_max" || op == "arg_min") return Arg();
    if (op == "top_k") return TopK();
    if (op == "cumsum") return CumSum();
    if (op == "gather_nd") return GatherNd();
    if (op == "scatter_elements") return ScatterElements();
    return {};
  }

  // --- Values of the copy
  const Dims& dims(int value) const { return graph_.type(value).dims; }
  int In(int i) { return copier_.Get(node_.inputs[i]); }

  int Emit(std::string op, std::vector<int> inputs,
           Attributes attributes = {}) {
    if (!status_.ok()) return 0;
    const absl::StatusOr<int> value =
        to_.AddNode(absl::StrCat(node_.name, "/", ++emitted_), std::move(op),
                    std::move(inputs), std::move(attributes));
    if (value.ok()) return *value;
    status_ = value.status();
    return 0;
  }
  int Reshape(int value, const Dims& to) {
    return Emit("reshape", {value}, {{"dims", to}});
  }
  int Reduce(std::string op, int value, int64_t axis) {
    return Emit(std::move(op), {value},
                {{"axes", Dims{axis}}, {"keepdims", int64_t{0}}});
  }
  int Where(int condition, int yes, int no) {
    return Emit("where", {condition, yes, no});
  }
  int Scalar(proto::ElementType type, double value) {
    Array array = Array::Zeros({type, {}});
    if (array.is_real()) {
      array.reals[0] = value;
    } else {
      array.integers[0] = static_cast<int64_t>(value);
    }
    return to_.AddConstant(absl::StrCat(node_.name, "/number"), array);
  }
  // 0, 1, ... along `axis` of `rank` dimensions.
  int Places(int64_t count, int64_t axis, int64_t rank) {
    Dims along(rank, 1), places(count);
    along[axis] = count;
    std::iota(places.begin(), places.end(), 0);
    return to_.AddConstant(absl::StrCat(node_.name, "/places"),
                           Array::Integers(proto::ELEMENT_I64, along, places));
  }

  // A tensor as [outer, size, inner] around an axis.
  struct Lines {
    int64_t outer = 1, size = 1, inner = 1;
  };
  static Lines LinesOf(const Dims& dims, int64_t axis) {
    Lines lines;
    for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d) {
      (d < axis    ? lines.outer
       : d == axis ? lines.size
                   : lines.inner) *= dims[d];
    }
    return lines;
  }
  // True if comparing each of a line with `others` is little work.
  static bool IsLittle(const Lines& lines, int64_t others) {
    return lines.size > 0 && lines.size <= kMostAlongAxis && others > 0 &&
           others <= kMostAlongAxis &&
           lines.outer * lines.inner <= kMostPairs / lines.size / others;
  }

  // --- Windows
  static Dims Wide(const Dims& one, int64_t first) { return {first, one[0]}; }

  static Dims With(Dims dims, int64_t one) {
    dims.insert(dims.begin() + 2, one);
    return dims;
  }

  // In two dimensions, the first of which has one place.
  Attributes WideAttributes() const {
    Attributes attributes = node_.attributes;
    for (const auto& [name, first] :
         {std::pair<const char*, int64_t>{"strides", 1},
          {"dilations", 1},
          {"kernel", 1},
          {"begin", 0},
          {"end", 0},
          {"output_padding", 0}}) {
      const auto found = attributes.find(name);
      if (found != attributes.end()) {
        found->second = Wide(std::get<Dims>(found->second), first);
      }
    }
    return attributes;
  }

  int WithBias(int y, int64_t filters) {
    if (node_.inputs.size() < 3 || node_.inputs[2] < 0) return y;
    return Emit("add", {y, Reshape(In(2), {1, filters, 1, 1})});
  }

  Values Widened() {
    std::vector<int> operands = {
        Reshape(In(0), With(dims(node_.inputs[0]), 1))};
    if (node_.op == "conv") {
      operands.push_back(Reshape(In(1), With(dims(node_.inputs[1]), 1)));
    }
    const int first = Emit(node_.op, operands, WideAttributes());
    Values results;
    for (size_t i = 0; i < node_.outputs.size(); ++i) {
      const Dims& to = dims(node_.outputs[i]);
      const int y = first + static_cast<int>(i);
      results.push_back(
          Reshape(node_.op == "conv" ? WithBias(y, to[1]) : y, to));
    }
    return results;
  }

  Values ConvTranspose() {
    const bool wide = dims(node_.inputs[0]).size() == 3;
    const Attributes attributes = wide ? WideAttributes() : node_.attributes;
    const auto ints = [&](const char* name) {
      return std::get<Dims>(attributes.find(name)->second);
    };
    const Dims strides = ints("strides"), dilations = ints("dilations"),
               more = ints("output_padding");
    Dims begin = ints("begin"), end = ints("end");
    const Dims d =
        wide ? With(dims(node_.inputs[0]), 1) : dims(node_.inputs[0]);
    const Dims w =
        wide ? With(dims(node_.inputs[1]), 1) : dims(node_.inputs[1]);
    const int64_t group = node_.Int("group", 1), filters = w[1] * group;
    int x = wide ? Reshape(In(0), d) : In(0);
    int weights = wide ? Reshape(In(1), w) : In(1);
    const Dims kernel = {w[2], w[3]}, none = {0, 0};
    int y;
    if (strides == kernel && begin == none && end == none && more == none &&
        group == 1) {
      // Each pixel becomes a block of its own.
      x = Reshape(Emit("transpose", {x}, {{"perm", Dims{0, 2, 3, 1}}}),
                  {d[0] * d[2] * d[3], d[1]});
      y = Emit("matmul", {x, Reshape(weights, {w[0], w[1] * w[2] * w[3]})});
      y = Reshape(y, {d[0], d[2], d[3], w[1], w[2], w[3]});
      y = Emit("transpose", {y}, {{"perm", Dims{0, 3, 1, 4, 2, 5}}});
      y = Reshape(y, {d[0], w[1], d[2] * w[2], d[3] * w[3]});
    } else {
      x = Spread(x, d, strides);
      // The filters turned around, and those of a group together.
      const int apart =
          Reshape(weights, {group, w[0] / group, w[1], w[2], w[3]});
      weights =
          Reshape(Emit("transpose", {apart}, {{"perm", Dims{0, 2, 1, 3, 4}}}),
                  {filters, w[0] / group, w[2], w[3]});
      weights = Emit("slice", {weights},
                     {{"starts", Dims{0, 0, w[2] - 1, w[3] - 1}},
                      {"steps", Dims{1, 1, -1, -1}},
                      {"dims", Dims{filters, w[0] / group, w[2], w[3]}}});
      for (int i = 0; i < 2; ++i) {
        const int64_t reach = (kernel[i] - 1) * dilations[i];
        begin[i] = reach - begin[i];
        end[i] = reach - end[i] + more[i];
      }
      y = Emit("conv", {x, weights},
               {{"strides", Dims{1, 1}},
                {"begin", begin},
                {"end", end},
                {"dilations", dilations},
                {"group", group}});
    }
    y = WithBias(y, filters);
    return {wide ? Reshape(y, dims(node_.outputs[0])) : y};
  }

  // x with zeros between its pixels.
  int Spread(int x, const Dims& d, const Dims& strides) {
    if (strides == Dims{1, 1}) return x;
    x = Reshape(x, {d[0], d[1], d[2], 1, d[3], 1});
    x = Emit("pad", {x},
             {{"before", Dims(6, 0)},
              {"after", Dims{0, 0, 0, strides[0] - 1, 0, strides[1] - 1}},
              {"mode", std::string("constant")}});
    x = Reshape(x, {d[0], d[1], d[2] * strides[0], d[3] * strides[1]});
    return Emit("slice", {x},
                {{"starts", Dims(4, 0)},
                 {"steps", Dims(4, 1)},
                 {"dims", Dims{d[0], d[1], (d[2] - 1) * strides[0] + 1,
                               (d[3] - 1) * strides[1] + 1}}});
  }

  // The axis becomes the last one.
  Values Softmax() {
    const int64_t axis = node_.Int("axis");
    Dims perm(dims(node_.inputs[0]).size());
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[axis], perm.back());
    const int y =
        Emit("softmax", {Emit("transpose", {In(0)}, {{"perm", perm}})},
             {{"axis", static_cast<int64_t>(perm.size()) - 1}});
    return {Emit("transpose", {y}, {{"perm", perm}})};
  }

  Values Concat() {
    Values parts;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      parts.push_back(In(static_cast<int>(i)));
    }
    while (parts.size() > 1) {
      Values joined;
      for (size_t i = 0; i < parts.size(); i += kMostParts) {
        const Values some(
            parts.begin() + i,
            parts.begin() + std::min(i + kMostParts, parts.size()));
        joined.push_back(Emit("concat", some, {{"axis", node_.Int("axis")}}));
      }
      parts = std::move(joined);
    }
    return parts;
  }

  // --- Order
  Values Arg() {
    const int64_t axis = node_.Int("axis");
    const Dims& from = dims(node_.inputs[0]);
    const int64_t size = from[axis];
    const bool most = node_.op == "arg_max", last = node_.Int("last") != 0;
    const int best = Emit(most ? "reduce_max" : "reduce_min", {In(0)},
                          {{"axes", Dims{axis}}, {"keepdims", int64_t{1}}});
    const int places = Places(size, axis, static_cast<int64_t>(from.size()));
    const int where = Where(
        Emit("equal", {In(0), best}), places,
        Scalar(proto::ELEMENT_I64, last ? -1 : static_cast<double>(size)));
    return {Emit(last ? "reduce_max" : "reduce_min", {where},
                 {{"axes", Dims{axis}}, {"keepdims", node_.Int("keepdims")}})};
  }

  Values TopK() {
    const int64_t axis = node_.Int("axis"), k = node_.Int("k");
    const TensorType& type = graph_.type(node_.inputs[0]);
    const Lines l = LinesOf(type.dims, axis);
    if (k < 1 || !IsLittle(l, l.size)) return {};
    const int a = Reshape(In(0), {l.outer, l.size, 1, l.inner});
    const int b = Reshape(In(0), {l.outer, 1, l.size, l.inner});
    const bool largest = node_.Int("largest", 1) != 0;
    const int is_earlier =
        Emit("less", {Places(l.size, 2, 4), Places(l.size, 1, 4)});
    int same = Emit("equal", {a, b});
    int before = Emit(largest ? "greater" : "less", {b, a});
    if (IsReal(type.type)) {
      // NaN after everything else.
      const int a_is = Emit("is_nan", {a}), b_is = Emit("is_nan", {b});
      same = Emit("or", {same, Emit("and", {a_is, b_is})});
      before = Emit("or", {before, Emit("and", {a_is, Emit("not", {b_is})})});
    }
    before = Emit("or", {before, Emit("and", {same, is_earlier})});
    // How many come before each.
    const int count = Reduce("reduce_sum",
                             Where(before, Scalar(proto::ELEMENT_I64, 1),
                                   Scalar(proto::ELEMENT_I64, 0)),
                             2);
    const int hit =
        Emit("equal",
             {Reshape(count, {l.outer, 1, l.size, l.inner}), Places(k, 1, 4)});
    const Dims& to = dims(node_.outputs[0]);
    const int value =
        Reduce("reduce_sum", Where(hit, b, Scalar(type.type, 0)), 2);
    const int place = Reduce(
        "reduce_sum",
        Where(hit, Places(l.size, 2, 4), Scalar(proto::ELEMENT_I64, 0)), 2);
    return {Reshape(value, to), Reshape(place, to)};
  }

  Values CumSum() {
    const int64_t axis = node_.Int("axis");
    const TensorType& type = graph_.type(node_.inputs[0]);
    const Lines l = LinesOf(type.dims, axis);
    if (!IsLittle(l, l.size)) return {};
    const bool exclusive = node_.Int("exclusive") != 0;
    const bool reverse = node_.Int("reverse") != 0;
    const std::string compare = absl::StrCat(reverse ? "greater" : "less",
                                             exclusive ? "" : "_or_equal");
    const int counts =
        Emit(compare, {Places(l.size, 2, 4), Places(l.size, 1, 4)});
    const int x = Reshape(In(0), {l.outer, 1, l.size, l.inner});
    const int sum =
        Reduce("reduce_sum", Where(counts, x, Scalar(type.type, 0)), 2);
    return {Reshape(sum, type.dims)};
  }

  // --- Indices
  // Those that are negative count from the end.
  int FromStart(int at, int64_t size) {
    const proto::ElementType type = to_.type(at).type;
    return Where(Emit("less", {at, Scalar(type, 0)}),
                 Emit("add", {at, Scalar(type, static_cast<double>(size))}),
                 at);
  }

  Values GatherNd() {
    const Dims &x = dims(node_.inputs[0]), &at = dims(node_.inputs[1]);
    const int64_t width = at.back();
    if (node_.Int("batch_dims") != 0 || width < 1) return {};
    const int64_t rows = Elements(Dims(x.begin(), x.begin() + width));
    const Dims inner(x.begin() + width, x.end());
    Dims one = at, rest(at.begin(), at.end() - 1);
    one.back() = 1;
    int row = -1;
    for (int64_t i = 0; i < width; ++i) {
      Dims starts(at.size(), 0);
      starts.back() = i;
      int part = at.size() == 0 ? In(1)
                                : Emit("slice", {In(1)},
                                       {{"starts", starts},
                                        {"steps", Dims(at.size(), 1)},
                                        {"dims", one}});
      part = FromStart(Reshape(part, rest), x[i]);
      if (row >= 0) {
        const int factor =
            Scalar(to_.type(row).type, static_cast<double>(x[i]));
        part = Emit("add", {Emit("mul", {row, factor}), part});
      }
      row = part;
    }
    Dims flat = inner;
    flat.insert(flat.begin(), rows);
    return {
        Emit("gather", {Reshape(In(0), flat), row}, {{"axis", int64_t{0}}})};
  }

  Values ScatterElements() {
    const int64_t axis = node_.Int("axis");
    const std::string reduction = node_.Text("reduction");
    const TensorType& type = graph_.type(node_.inputs[0]);
    Dims at = dims(node_.inputs[1]);
    const Lines l = LinesOf(type.dims, axis);
    const int64_t updates = at.empty() ? 0 : at[axis];
    if (!at.empty()) at[axis] = type.dims[axis];
    if ((!reduction.empty() && reduction != "add") || at != type.dims ||
        !IsLittle(l, updates)) {
      return {};
    }
    const int rows =
        Reshape(FromStart(In(1), l.size), {l.outer, 1, updates, l.inner});
    const int places =
        Emit("cast", {Places(l.size, 1, 4)},
             {{"to", static_cast<int64_t>(graph_.type(node_.inputs[1]).type)}});
    const int hit = Emit("equal", {rows, places});
    const int update = Reshape(In(2), {l.outer, 1, updates, l.inner});
    const int x = Reshape(In(0), {l.outer, l.size, l.inner});
    if (reduction == "add") {
      const int sum =
          Reduce("reduce_sum", Where(hit, update, Scalar(type.type, 0)), 2);
      return {Reshape(Emit("add", {x, sum}), type.dims)};
    }
    // The last update of a place stays.
    const int last = Reduce(
        "reduce_max",
        Where(hit, Places(updates, 2, 4), Scalar(proto::ELEMENT_I64, -1)), 2);
    const int none = Scalar(proto::ELEMENT_I64, 0);
    const int is_there = Emit("greater_or_equal", {last, none});
    const int taken = Emit("gather_elements",
                           {Reshape(In(2), {l.outer, updates, l.inner}),
                            Emit("max", {last, none})},
                           {{"axis", int64_t{1}}});
    return {Reshape(Where(is_there, taken, x), type.dims)};
  }

  const Graph& graph_;
  const Node& node_;
  Copier& copier_;
  Graph& to_;
  int emitted_ = 0;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::vector<int>> Expand(const Graph& graph, const Node& node,
                                        Copier& copier) {
  // There is no code for f16.
  if (node.inputs.empty() || node.inputs[0] < 0 ||
      graph.type(node.inputs[0]).type == proto::ELEMENT_F16 ||
      Elements(graph.type(node.outputs[0]).dims) == 0 ||
      Elements(graph.type(node.inputs[0]).dims) == 0) {
    return std::vector<int>();
  }
  return Expander(graph, node, copier).Run();
}

}  // namespace optrail::graph
