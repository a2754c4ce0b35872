#include "graph/onnx/inline_functions.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/onnx/node_order.h"

namespace optrail::graph {
namespace {

// Functions stand for modules, which hardly nest so deeply: those that do call
// themselves.
constexpr int kMostDepth = 64;
// Functions that call others twice double with each of them.
constexpr int64_t kMostNodes = int64_t{1} << 20;

class Inliner {
 public:
  explicit Inliner(const std::vector<OnnxFunction>& functions) {
    for (const OnnxFunction& function : functions) {
      functions_.emplace(Key(function.domain, function.name), &function);
    }
  }

  // Counts before anything is made.
  absl::Status Run(OnnxGraph& graph) {
    OPTRAIL_ASSIGN_OR_RETURN(const int64_t nodes, Count(graph.nodes, 0));
    if (nodes > kMostNodes) {
      return absl::InvalidArgumentError(
          absl::StrCat("the model's functions have more than ", kMostNodes,
                       " nodes once they stand where they are called"));
    }
    return Inline(graph);
  }

 private:
  using Key = std::pair<std::string, std::string>;
  using Names = std::map<std::string, std::string, std::less<>>;
  // One call of a function.
  struct Call {
    const OnnxNode& node;
    const OnnxFunction& function;
    Names names;  // the function's, and what they are in the graph
  };

  static std::string Renamed(const Names& names, const std::string& name) {
    const auto found = names.find(name);
    return found == names.end() ? name : found->second;
  }

  // The nodes that these become, at most a little more than kMostNodes.
  absl::StatusOr<int64_t> Count(const std::vector<OnnxNode>& nodes, int depth) {
    int64_t count = 0;
    for (const OnnxNode& node : nodes) {
      const auto found = functions_.find({node.domain, node.op});
      if (found != functions_.end()) {
        absl::StatusOr<int64_t> inner = CountCall(node, *found->second, depth);
        if (!inner.ok()) return inner;
        count += *inner;
      } else {
        ++count;
        for (const auto& [name, attribute] : node.attributes) {
          if (attribute.graph == nullptr) continue;
          OPTRAIL_ASSIGN_OR_RETURN(const int64_t inner,
                                   Count(attribute.graph->nodes, depth));
          count += inner;
        }
      }
      count = std::min(count, kMostNodes + 1);
    }
    return count;
  }

  absl::StatusOr<int64_t> CountCall(const OnnxNode& node,
                                    const OnnxFunction& function, int depth) {
    const auto known = counts_.find(&function);
    if (known != counts_.end()) return known->second;
    if (depth >= kMostDepth) {
      return AtNode(node, absl::InvalidArgumentError(absl::StrCat(
                              "calls of functions are more than ", kMostDepth,
                              " deep; expected none that calls itself")));
    }
    OPTRAIL_ASSIGN_OR_RETURN(const int64_t count,
                             Count(function.nodes, depth + 1));
    counts_[&function] = count;
    return count;
  }

  absl::Status Inline(OnnxGraph& graph) {
    std::vector<OnnxNode> nodes;
    for (OnnxNode& node : graph.nodes) {
      OPTRAIL_RETURN_IF_ERROR(Add(std::move(node), nodes));
    }
    graph.nodes = std::move(nodes);
    return absl::OkStatus();
  }

  absl::Status Add(OnnxNode node, std::vector<OnnxNode>& nodes) {
    const auto found = functions_.find({node.domain, node.op});
    if (found != functions_.end()) return AddCall(node, *found->second, nodes);
    for (auto& [name, attribute] : node.attributes) {
      if (attribute.graph == nullptr) continue;
      auto inner = std::make_shared<OnnxGraph>(*attribute.graph);
      OPTRAIL_RETURN_IF_ERROR(Inline(*inner));
      attribute.graph = std::move(inner);
    }
    nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::Status AddCall(const OnnxNode& node, const OnnxFunction& function,
                       std::vector<OnnxNode>& nodes) {
    if (node.inputs.size() > function.inputs.size() ||
        node.outputs.size() > function.outputs.size()) {
      return AtNode(
          node, absl::InvalidArgumentError(absl::StrCat(
                    node.inputs.size(), " inputs and ", node.outputs.size(),
                    " outputs; expected at most the ", function.inputs.size(),
                    " and ", function.outputs.size(), " of its function")));
    }
    Call call = {node, function, {}};
    NameValues(call, nodes);
    for (const OnnxNode& body : function.nodes) {
      OnnxNode added = InCall(body, call);
      added.name = absl::StrCat(node.name, "/", body.name);
      if (added.opset == 0) added.opset = function.opset;
      OPTRAIL_RETURN_IF_ERROR(Add(std::move(added), nodes));
    }
    return absl::OkStatus();
  }

  // Inputs, outputs and what lies between.
  static void NameValues(Call& call, std::vector<OnnxNode>& nodes) {
    const OnnxNode& node = call.node;
    for (const OnnxNode& body : call.function.nodes) {
      for (const std::string& name : body.outputs) {
        if (!name.empty()) {
          call.names[name] = absl::StrCat(node.name, "/", name);
        }
      }
    }
    for (size_t i = 0; i < call.function.inputs.size(); ++i) {
      call.names[call.function.inputs[i]] =
          i < node.inputs.size() ? node.inputs[i] : "";
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      const std::string& name = call.function.outputs[i];
      const auto& inputs = call.function.inputs;
      if (std::find(inputs.begin(), inputs.end(), name) == inputs.end()) {
        call.names[name] = node.outputs[i];
        continue;
      }
      // It is handed through.
      OnnxNode same;
      same.op = "Identity";
      same.name = absl::StrCat(node.name, "/", name);
      same.inputs = {call.names[name]};
      same.outputs = {node.outputs[i]};
      nodes.push_back(std::move(same));
    }
  }

  static OnnxNode InCall(const OnnxNode& body, const Call& call) {
    OnnxNode node = body;
    for (std::string& name : node.inputs) name = Renamed(call.names, name);
    for (std::string& name : node.outputs) name = Renamed(call.names, name);
    for (auto it = node.attributes.begin(); it != node.attributes.end();) {
      OnnxAttribute& attribute = it->second;
      if (attribute.graph != nullptr) {
        auto inner = std::make_shared<OnnxGraph>(*attribute.graph);
        for (OnnxNode& one : inner->nodes) one = InCall(one, call);
        for (OnnxValue& output : inner->outputs) {
          output.name = Renamed(call.names, output.name);
        }
        attribute.graph = std::move(inner);
      }
      if (attribute.reference.empty()) {
        ++it;
        continue;
      }
      // The call's, the function's, or the operator's own default.
      const std::string referred = attribute.reference;
      const auto given = call.node.attributes.find(referred);
      const auto otherwise = call.function.defaults.find(referred);
      if (given != call.node.attributes.end()) {
        (it++)->second = given->second;
      } else if (otherwise != call.function.defaults.end()) {
        (it++)->second = otherwise->second;
      } else {
        it = node.attributes.erase(it);
      }
    }
    return node;
  }

  std::map<Key, const OnnxFunction*> functions_;
  std::map<const OnnxFunction*, int64_t> counts_;
};

}  // namespace

absl::Status InlineFunctions(const std::vector<OnnxFunction>& functions,
                             OnnxGraph& graph) {
  if (functions.empty()) return absl::OkStatus();
  return Inliner(functions).Run(graph);
}

}  // namespace optrail::graph
