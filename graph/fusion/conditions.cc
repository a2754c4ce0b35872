#include "graph/fusion/conditions.h"

#include <cmath>
#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace optrail::graph {
namespace {

// A condition with its words looked up.
struct Asked {
  const Graph& graph;
  const MatchedNames& match;
  const std::vector<std::string> words;

  int value(size_t word) const { return match.values.at(words[word]); }
  const TensorType& type(size_t word) const { return graph.type(value(word)); }
  const Node& node() const {
    return graph.nodes[graph.values[value(1)].producer];
  }
  double scalar(size_t word) const { return match.scalars.at(words[word]); }
  // "" if it holds.
  std::string Holds(bool holds, absl::string_view why) const {
    return holds ? std::string()
                 : absl::StrCat(words[1], " is ", TypeText(type(1)), ", ", why);
  }
};

std::string IsRow(const Asked& a) {
  const int64_t size = a.type(2).dims.back();
  return a.Holds(a.type(1).dims == Dims{size},
                 absl::StrCat("not a row of ", size));
}

std::string IsAlongLastAxis(const Asked& a) {
  const Node& node = a.node();
  const int64_t last =
      static_cast<int64_t>(a.graph.type(node.inputs[0]).dims.size()) - 1;
  const bool is = node.op == "softmax" ? node.Int("axis") == last
                                       : node.Ints("axes") == Dims{last} &&
                                             node.Int("keepdims") != 0;
  return is ? "" : "it is not along the last axis";
}

std::string AreHeads(const Asked& a) {
  const Dims &q = a.type(1).dims, &k = a.type(2).dims, &v = a.type(3).dims;
  return a.Holds(
      q.size() == 4 && k.size() == 4 && k == Dims{q[0], q[1], q[3], k[3]} &&
          v == Dims{q[0], q[1], k[3], q[3]},
      absl::StrCat(a.words[2], " ", TypeText(a.type(2)), ", ", a.words[3], " ",
                   TypeText(a.type(3)), ": no heads of one size"));
}

std::string IsScale(const Asked& a, double scale) {
  const double expected =
      1 / std::sqrt(static_cast<double>(a.type(1).dims.back()));
  return a.Holds(std::fabs(scale / expected - 1) < 1e-6,
                 absl::StrCat("and the scale ", scale, " is not ", expected));
}

// Half of the range of f32 is more than any score that is finite after it.
std::string IsCausal(const Asked& a) {
  constexpr double kHides = -1e9;
  const Value& mask = a.graph.values[a.value(1)];
  if (mask.constant == nullptr || mask.constant->absent()) {
    return a.Holds(false, "computed");
  }
  const int64_t m = a.type(2).dims[2], n = a.type(3).dims[3];
  if (m > n || Elements(mask.type.dims) != m * n || mask.type.dims.size() < 2 ||
      mask.type.dims.back() != n) {
    return a.Holds(false, absl::StrCat("not a mask of ", m, "x", n));
  }
  const Array values = ConstantArray(mask.type, *mask.constant);
  for (int64_t i = 0; i < values.elements(); ++i) {
    const bool hidden = i % n > i / n + n - m;
    if (hidden ? !(values.At(i) <= kHides) : values.At(i) != 0) {
      return a.Holds(false, "not a causal mask");
    }
  }
  return "";
}

std::string AreChannels(const Asked& a) {
  Dims dims(a.type(1).dims.size(), 1);
  const int64_t filters = a.type(2).dims[0];
  if (dims.size() >= 3) dims[dims.size() - 3] = filters;
  return a.Holds(dims.size() >= 3 && a.type(1).dims == dims &&
                     (a.type(2).dims.size() == 4),
                 absl::StrCat("not along ", filters, " channels"));
}

std::string IsPlainConv(const Asked& a) {
  const Node& node = a.node();
  const Dims pad = node.Ints("begin");
  const Dims twice(2, pad.empty() ? 0 : pad[0]);
  if (pad.size() != 2) return "it is not in two dimensions";
  if (node.Int("group", 1) != 1) return "the convolution is grouped";
  if (node.Ints("dilations") != Dims{1, 1}) return "it is dilated";
  const Dims strides = node.Ints("strides");
  return strides[0] == strides[1] && pad == twice &&
                 node.Ints("end") == twice && pad[0] >= 0
             ? ""
             : "its padding or strides are uneven";
}

using Kinds = std::map<std::string, std::function<std::string(const Asked&)>,
                       std::less<>>;

const Kinds& AllKinds() {
  static const Kinds* const kinds = new Kinds{
      {"f32",
       [](const Asked& a) {
         return a.Holds(a.type(1).type == proto::ELEMENT_F32, "not f32");
       }},
      {"matrix",
       [](const Asked& a) {
         return a.Holds(a.type(1).dims.size() == 2, "no matrix");
       }},
      {"constant",
       [](const Asked& a) {
         return a.Holds(a.graph.is_constant(a.value(1)), "computed");
       }},
      {"vector", IsRow},
      {"row", IsRow},
      {"activation",
       [](const Asked& a) -> std::string {
         return a.node().Text("activation").empty() ? ""
                                                    : "it has an activation";
       }},
      {"last_axis", IsAlongLastAxis},
      {"heads", AreHeads},
      {"scale", [](const Asked& a) { return IsScale(a, a.scalar(2)); }},
      {"divisor", [](const Asked& a) { return IsScale(a, 1 / a.scalar(2)); }},
      {"scales",
       [](const Asked& a) { return IsScale(a, a.scalar(2) * a.scalar(3)); }},
      {"same",
       [](const Asked& a) {
         return a.Holds(a.type(1) == a.type(2),
                        absl::StrCat("not ", TypeText(a.type(2))));
       }},
      {"causal", IsCausal},
      {"channels", AreChannels},
      {"plain_conv", IsPlainConv},
  };
  return *kinds;
}

}  // namespace

std::string WhyNot(const Graph& graph, const std::string& condition,
                   const MatchedNames& match) {
  const Asked asked{graph, match, absl::StrSplit(condition, ' ')};
  const auto kind = AllKinds().find(asked.words[0]);
  if (kind == AllKinds().end()) {
    return absl::StrCat("there is no condition \"", asked.words[0], "\"");
  }
  return kind->second(asked);
}

}  // namespace optrail::graph
