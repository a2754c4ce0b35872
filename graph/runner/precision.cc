#include "graph/runner/precision.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "graph/ir/ops.h"
#include "graph/runner/groups.h"

namespace optrail::graph {
namespace {

constexpr double kMostBf16 = 3.38953138925153547590470800371487866880e38;

class Conversion {
 public:
  Conversion(const Graph& graph, proto::ElementType to)
      : graph_(graph),
        to_(to),
        groups_(FindGroups(graph)),
        place_(graph.values.size(), -1) {}

  absl::StatusOr<Graph> Run() {
    copy_.name = graph_.name;
    for (const int input : graph_.inputs) {
      place_[input] =
          copy_.AddInput(graph_.values[input].name, graph_.type(input));
    }
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      OPTRAIL_RETURN_IF_ERROR(Convert(static_cast<int>(n)));
    }
    for (const int output : graph_.outputs) {
      OPTRAIL_ASSIGN_OR_RETURN(
          const int value,
          As(output, IsFloat(output) ? to_ : graph_.type(output).type));
      copy_.outputs.push_back(value);
    }
    return WithoutUnused(copy_);
  }

 private:
  bool IsFloat(int value) const {
    return graph_.type(value).type == proto::ELEMENT_F32;
  }

  // Computes in f32.
  static bool IsWide(const Node& node) {
    const OpKind kind = FindOp(node.op)->kind;
    return kind == OpKind::kElementwise ||
           (kind == OpKind::kReduction && absl::StartsWith(node.op, "reduce_"));
  }

  int ConstantAs(int value, proto::ElementType type) {
    const auto [known, is_new] = constants_.emplace(std::pair(value, type), -1);
    if (!is_new) return known->second;
    const Value& old = graph_.values[value];
    const TensorType to{type, old.type.dims};
    if (type == old.type.type || old.constant->absent()) {
      return known->second = copy_.AddConstant(old.name, to, *old.constant);
    }
    Array array = ConstantArray(old.type, *old.constant);
    array.type = to;
    for (double& x : array.reals) {
      if (std::isfinite(x)) x = std::clamp(x, -kMostBf16, kMostBf16);
    }
    return known->second = copy_.AddConstant(old.name, array);
  }

  // The value in the copy, of this type.
  absl::StatusOr<int> As(int value, proto::ElementType type) {
    if (graph_.is_constant(value)) return ConstantAs(value, type);
    const int here = place_[value];
    OPTRAIL_CHECK(here >= 0) << graph_.values[value].name;
    if (copy_.type(here).type == type) return here;
    // A cast of its own for each reader joins that reader's loop.
    return copy_.AddNode(absl::StrCat(graph_.values[value].name, " ",
                                      ElementTypeName(type), " ", casts_++),
                         "cast", {here}, {{"to", static_cast<int64_t>(type)}});
  }

  absl::Status Convert(int n) {
    const Node& node = graph_.nodes[n];
    const bool wide = IsWide(node);
    std::vector<int> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int value = node.inputs[i];
      if (value < 0) {
        inputs.push_back(-1);
        continue;
      }
      const bool stays = wide || (node.op == "conv_bn_relu" && i >= 2);
      OPTRAIL_ASSIGN_OR_RETURN(
          const int converted,
          As(value, !IsFloat(value) ? graph_.type(value).type
                    : stays         ? proto::ELEMENT_F32
                                    : to_));
      inputs.push_back(converted);
    }
    OPTRAIL_ASSIGN_OR_RETURN(
        int result, copy_.AddNode(node.name, node.op, inputs, node.attributes));
    for (const int output : node.outputs) place_[output] = result++;
    // A reduction's result is small.
    const bool stays =
        groups_.inlined[n] || FindOp(node.op)->kind == OpKind::kReduction;
    if (!wide || stays || !IsFloat(node.outputs[0])) return absl::OkStatus();
    OPTRAIL_ASSIGN_OR_RETURN(place_[node.outputs[0]], As(node.outputs[0], to_));
    return absl::OkStatus();
  }

  const Graph& graph_;
  const proto::ElementType to_;
  const Groups groups_;
  Graph copy_;
  std::vector<int> place_;
  std::map<std::pair<int, proto::ElementType>, int> constants_;
  int casts_ = 0;
};

}  // namespace

absl::StatusOr<Graph> ConvertFloats(const Graph& graph, proto::ElementType to) {
  if (to != proto::ELEMENT_BF16) {
    return absl::InvalidArgumentError(
        absl::StrCat("a graph in ", ElementTypeName(to), ": expected bf16"));
  }
  return Conversion(graph, to).Run();
}

}  // namespace optrail::graph
