#include "graph/fusion/site.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "graph/ir/graph_text.h"
#include "graph/ir/ops.h"

namespace optrail::graph {
namespace {

// And the views before them.
std::set<int> WithViews(const Graph& graph, std::set<int> nodes) {
  std::vector<int> pending(nodes.begin(), nodes.end());
  while (!pending.empty()) {
    const Node& node = graph.nodes[pending.back()];
    pending.pop_back();
    for (const int input : node.inputs) {
      const int producer = input < 0 ? -1 : graph.values[input].producer;
      if (producer < 0 || !IsView(graph.nodes[producer])) continue;
      if (nodes.insert(producer).second) pending.push_back(producer);
    }
  }
  return nodes;
}

// Builds the site's graph.
class Cutter {
 public:
  explicit Cutter(const Graph& graph) : graph_(graph) {}

  absl::Status Add(const Node& node) {
    std::vector<int> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      OPTRAIL_ASSIGN_OR_RETURN(
          const int input, Get(node.inputs[i], node.op == "conv" && i == 0));
      inputs.push_back(input);
    }
    OPTRAIL_ASSIGN_OR_RETURN(
        const int first,
        cut_.AddNode(node.name, node.op, std::move(inputs), node.attributes));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      place_[node.outputs[i]] = first + static_cast<int>(i);
    }
    return absl::OkStatus();
  }

  Graph Done(const std::vector<int>& outputs) {
    for (const int output : outputs) {
      cut_.outputs.push_back(place_.at(output));
    }
    return std::move(cut_);
  }

 private:
  absl::StatusOr<int> Get(int value, bool is_image) {
    if (value < 0) return value;
    const auto known = place_.find(value);
    if (known != place_.end()) return known->second;
    const Value& v = graph_.values[value];
    int& place = place_[value];
    if (v.constant != nullptr) {
      place = cut_.AddConstant(v.name, v.type, *v.constant);
    } else if (is_image && v.type.dims.size() == 4) {
      const Dims& d = v.type.dims;
      const int image =
          cut_.AddInput(v.name, {v.type.type, {d[0], d[2], d[3], d[1]}});
      OPTRAIL_ASSIGN_OR_RETURN(place,
                               cut_.AddNode("image", "transpose", {image},
                                            {{"perm", Dims{0, 3, 1, 2}}}));
    } else {
      place = cut_.AddInput(v.name, v.type);
    }
    return place;
  }

  const Graph& graph_;
  Graph cut_;
  std::map<int, int> place_;
};

std::string SiteText(const Graph& graph) {
  std::vector<std::string> lines;
  for (const Node& node : graph.nodes) {
    std::vector<std::string> inputs;
    for (const int input : node.inputs) {
      inputs.push_back(input < 0 ? "" : TypeText(graph.type(input)));
    }
    const std::string attributes = AttributesText(node.attributes);
    lines.push_back(absl::StrCat(
        node.op, "(", absl::StrJoin(inputs, ","), ")",
        attributes.empty() ? "" : absl::StrCat("{", attributes, "}")));
  }
  return absl::StrJoin(lines, "; ");
}

}  // namespace

absl::StatusOr<FusionSite> SiteOf(const Graph& graph, const FusionRule& rule,
                                  const std::set<int>& nodes,
                                  const std::vector<int>& results) {
  FusionSite site;
  site.rule = rule.name;
  Cutter cutter(graph);
  for (const int n : WithViews(graph, nodes)) {
    OPTRAIL_RETURN_IF_ERROR(cutter.Add(graph.nodes[n]));
  }
  site.unfused = cutter.Done(results);
  site.text = SiteText(site.unfused);
  FusionReport report;
  OPTRAIL_ASSIGN_OR_RETURN(site.fused, Fuse(site.unfused, {rule}, &report));
  return site;
}

}  // namespace optrail::graph
