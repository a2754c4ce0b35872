#include "graph/onnx/inline_functions.h"

#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "graph/onnx/node_order.h"

namespace optrail::graph {
namespace {

// Functions stand for modules, which hardly nest so deeply: those that do call
// themselves.
constexpr int kMostDepth = 64;
// A file of a few kilobytes can ask for any number of nodes, calls and bytes:
// a function that calls another one twice doubles it, names of calls stand in
// front of those inside, and each call has the attributes anew.
constexpr int64_t kMostNodes = int64_t{1} << 20;
constexpr int64_t kMostBytes = int64_t{1} << 28;

int64_t BytesOf(const std::vector<std::string>& texts) {
  int64_t bytes = 0;
  for (const std::string& text : texts) {
    bytes += static_cast<int64_t>(sizeof(text) + text.size());
  }
  return bytes;
}

// Tensors are shared and graphs counted by themselves.
int64_t BytesOf(const OnnxAttribute& attribute) {
  return static_cast<int64_t>(attribute.text.size() +
                              attribute.integers.size() * sizeof(int64_t) +
                              attribute.reals.size() * sizeof(double)) +
         BytesOf(attribute.texts);
}

int64_t BytesOf(const OnnxNode& node) {
  int64_t bytes = static_cast<int64_t>(node.name.size() + node.op.size() +
                                       node.domain.size()) +
                  BytesOf(node.inputs) + BytesOf(node.outputs);
  for (const auto& [name, attribute] : node.attributes) {
    bytes += static_cast<int64_t>(name.size()) + BytesOf(attribute);
  }
  return bytes;
}

// Nodes are counted by themselves.
int64_t BytesOf(const OnnxGraph& graph) {
  int64_t bytes = 0;
  const auto add = [&](const std::string& name, const TensorType& type) {
    bytes += static_cast<int64_t>(name.size() + sizeof(OnnxTensor) +
                                  type.dims.size() * sizeof(int64_t));
  };
  for (const OnnxTensor& one : graph.initializers) add(one.name, one.type);
  for (const auto* const list : {&graph.inputs, &graph.outputs}) {
    for (const OnnxValue& value : *list) {
      add(value.name, value.type);
      bytes += BytesOf(value.symbols);
    }
  }
  return bytes;
}

// Names of a function, or of a graph inside of one, and what they become.
struct Scope {
  const Scope* outer = nullptr;
  std::map<std::string, std::string, std::less<>> names = {};

  const std::string* Find(const std::string& name) const {
    const auto found = names.find(name);
    if (found != names.end()) return &found->second;
    return outer == nullptr ? nullptr : outer->Find(name);
  }
};

struct Call {
  const OnnxNode& node;
  const OnnxFunction& function;
};

// Counts before it copies.
class Inliner {
 public:
  absl::Status Run(const std::vector<OnnxFunction>& functions,
                   OnnxGraph& graph) {
    for (const OnnxFunction& function : functions) {
      const Key key = {function.domain, function.name, function.overload};
      if (functions_.emplace(key, &function).second) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("two functions are called ", Quoted(function.name),
                       " of domain ", Quoted(function.domain), " and overload ",
                       Quoted(function.overload), "; expected one"));
    }
    UseNames(graph);
    return Inline(graph, 0);
  }

 private:
  using Key = std::tuple<std::string, std::string, std::string>;

  absl::Status Spend(int64_t nodes, int64_t bytes) {
    nodes_ += nodes;
    bytes_ += bytes;
    if (nodes_ > kMostNodes) {
      return absl::InvalidArgumentError(
          absl::StrCat("the model's functions have more than ", kMostNodes,
                       " nodes and calls once they stand where they are "
                       "called"));
    }
    if (bytes_ > kMostBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("the model's functions have more than ", kMostBytes,
                       " bytes of names and attributes once they stand where "
                       "they are called"));
    }
    return absl::OkStatus();
  }

  // A call's graph may be handed on many times.
  absl::Status SpendGraph(const OnnxGraph& graph) {
    OPTRAIL_RETURN_IF_ERROR(Spend(1, BytesOf(graph)));
    for (const OnnxNode& node : graph.nodes) {
      OPTRAIL_RETURN_IF_ERROR(Spend(1, BytesOf(node)));
      for (const auto& [name, attribute] : node.attributes) {
        if (attribute.graph == nullptr) continue;
        OPTRAIL_RETURN_IF_ERROR(SpendGraph(*attribute.graph));
      }
    }
    return absl::OkStatus();
  }

  void UseNames(const OnnxGraph& graph) {
    for (const OnnxTensor& one : graph.initializers) used_[one.name] = 1;
    for (const auto* const list :
         {&graph.inputs, &graph.outputs, &graph.values}) {
      for (const OnnxValue& value : *list) used_[value.name] = 1;
    }
    for (const OnnxNode& node : graph.nodes) {
      for (const auto* const list : {&node.inputs, &node.outputs}) {
        for (const std::string& name : *list) used_[name] = 1;
      }
      for (const auto& [name, attribute] : node.attributes) {
        if (attribute.graph != nullptr) UseNames(*attribute.graph);
      }
    }
  }

  // A name that nothing has: with the call's in front and, where calls have
  // the same name, a number behind.
  absl::StatusOr<std::string> NewName(const Call& call,
                                      const std::string& name) {
    std::string made = absl::StrCat(call.node.name, "/", name);
    OPTRAIL_RETURN_IF_ERROR(Spend(0, 2 * static_cast<int64_t>(made.size())));
    int64_t& last = used_[made];
    if (last == 0) {
      last = 1;
      return made;
    }
    for (;;) {
      std::string numbered = absl::StrCat(made, "_", ++last);
      if (used_.emplace(numbered, 1).second) return numbered;
    }
  }

  absl::Status Inline(OnnxGraph& graph, int depth) {
    std::vector<OnnxNode> nodes;
    for (OnnxNode& node : graph.nodes) {
      OPTRAIL_RETURN_IF_ERROR(Add(std::move(node), depth, nodes));
    }
    graph.nodes = std::move(nodes);
    return absl::OkStatus();
  }

  absl::Status Add(OnnxNode node, int depth, std::vector<OnnxNode>& nodes) {
    const auto found = functions_.find({node.domain, node.op, node.overload});
    if (depth > kMostDepth) {
      return AtNode(node, absl::InvalidArgumentError(absl::StrCat(
                              "calls of functions are more than ", kMostDepth,
                              " deep; expected none that calls itself")));
    }
    if (found != functions_.end()) {
      return AddCall({node, *found->second}, depth, nodes);
    }
    for (auto& [name, attribute] : node.attributes) {
      if (attribute.graph == nullptr) continue;
      auto inner = std::make_shared<OnnxGraph>(*attribute.graph);
      OPTRAIL_RETURN_IF_ERROR(Inline(*inner, depth + 1));
      attribute.graph = std::move(inner);
    }
    nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::Status AddCall(const Call& call, int depth,
                       std::vector<OnnxNode>& nodes) {
    const auto& [node, function] = call;
    if (node.inputs.size() > function.inputs.size() ||
        node.outputs.size() > function.outputs.size()) {
      return AtNode(
          node, absl::InvalidArgumentError(absl::StrCat(
                    node.inputs.size(), " inputs and ", node.outputs.size(),
                    " outputs; expected at most the ", function.inputs.size(),
                    " and ", function.outputs.size(), " of its function")));
    }
    Scope scope;
    const absl::Status named = NameValues(call, scope, nodes);
    if (!named.ok()) return AtNode(node, named);
    for (const OnnxNode& body : function.nodes) {
      absl::StatusOr<OnnxNode> added = InCall(body, call, scope);
      if (!added.ok()) return AtNode(node, added.status());
      OPTRAIL_RETURN_IF_ERROR(Add(*std::move(added), depth + 1, nodes));
    }
    return absl::OkStatus();
  }

  // Inputs, outputs and what lies between.
  absl::Status NameValues(const Call& call, Scope& scope,
                          std::vector<OnnxNode>& nodes) {
    const auto& [node, function] = call;
    std::set<absl::string_view> computed;
    for (size_t i = 0; i < function.inputs.size(); ++i) {
      const std::string& name = function.inputs[i];
      if (!computed.insert(name).second) return IsTwice(name);
      scope.names[name] = i < node.inputs.size() ? node.inputs[i] : "";
    }
    for (const OnnxNode& body : function.nodes) {
      for (const std::string& name : body.outputs) {
        if (name.empty() || computed.insert(name).second) continue;
        return IsTwice(name);
      }
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const std::string& name = function.outputs[i];
      if (node.outputs[i].empty()) continue;
      if (computed.count(name) == 0) return IsUnknown(name);
      if (scope.names.emplace(name, node.outputs[i]).second) continue;
      // An input that is handed through, or an output that stands there twice.
      OnnxNode same;
      same.op = "Identity";
      same.name = absl::StrCat(node.name, "/", name);
      same.inputs = {scope.names[name]};
      same.outputs = {node.outputs[i]};
      OPTRAIL_RETURN_IF_ERROR(Spend(1, BytesOf(same)));
      nodes.push_back(std::move(same));
    }
    for (const OnnxNode& body : function.nodes) {
      for (const std::string& name : body.outputs) {
        if (name.empty() || scope.names.count(name) > 0) continue;
        OPTRAIL_ASSIGN_OR_RETURN(scope.names[name], NewName(call, name));
      }
    }
    return absl::OkStatus();
  }

  static absl::Status IsTwice(absl::string_view name) {
    return absl::InvalidArgumentError(
        absl::StrCat("its function has two values called ", Quoted(name)));
  }
  static absl::Status IsUnknown(absl::string_view name) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its function reads ", Quoted(name),
        ", which is none of its inputs and is computed by none of its nodes"));
  }

  absl::Status Rename(const Scope& scope, std::string& name) {
    if (name.empty()) return absl::OkStatus();
    const std::string* const found = scope.Find(name);
    if (found == nullptr) return IsUnknown(name);
    OPTRAIL_RETURN_IF_ERROR(Spend(0, static_cast<int64_t>(found->size())));
    name = *found;
    return absl::OkStatus();
  }

  absl::StatusOr<OnnxNode> InCall(const OnnxNode& body, const Call& call,
                                  const Scope& scope) {
    OPTRAIL_RETURN_IF_ERROR(
        Spend(1, BytesOf(body) + static_cast<int64_t>(call.node.name.size())));
    OnnxNode node = body;
    node.name = absl::StrCat(call.node.name, "/", body.name);
    if (node.opset == 0) node.opset = call.function.opset;
    for (auto* const list : {&node.inputs, &node.outputs}) {
      for (std::string& name : *list) {
        OPTRAIL_RETURN_IF_ERROR(Rename(scope, name));
      }
    }
    for (auto it = node.attributes.begin(); it != node.attributes.end();) {
      OnnxAttribute& attribute = it->second;
      if (attribute.reference.empty()) {
        if (attribute.graph != nullptr) {
          OPTRAIL_ASSIGN_OR_RETURN(attribute.graph,
                                   GraphInCall(*attribute.graph, call, scope));
        }
        ++it;
        continue;
      }
      // The call's, the function's, or the operator's own default.
      const OnnxAttribute* const given = Given(call, attribute.reference);
      if (given == nullptr) {
        it = node.attributes.erase(it);
        continue;
      }
      OPTRAIL_RETURN_IF_ERROR(Spend(0, BytesOf(*given)));
      if (given->graph != nullptr) {
        OPTRAIL_RETURN_IF_ERROR(SpendGraph(*given->graph));
      }
      (it++)->second = *given;
    }
    return node;
  }

  // Names of a call's graph are those of where the call stands.
  static const OnnxAttribute* Given(const Call& call, const std::string& name) {
    for (const auto* const list :
         {&call.node.attributes, &call.function.defaults}) {
      const auto found = list->find(name);
      if (found != list->end()) return &found->second;
    }
    return nullptr;
  }

  // Values that it defines get new names too: otherwise they would hide values
  // of the caller that have the same name.
  absl::StatusOr<std::shared_ptr<const OnnxGraph>> GraphInCall(
      const OnnxGraph& graph, const Call& call, const Scope& outer) {
    OPTRAIL_RETURN_IF_ERROR(Spend(1, BytesOf(graph)));
    auto inner = std::make_shared<OnnxGraph>();
    inner->name = graph.name;
    inner->initializers = graph.initializers;
    inner->inputs = graph.inputs;
    inner->outputs = graph.outputs;
    Scope scope = {&outer};
    const auto define = [&](const std::string& name) -> absl::Status {
      OPTRAIL_ASSIGN_OR_RETURN(scope.names[name], NewName(call, name));
      return absl::OkStatus();
    };
    for (OnnxValue& input : inner->inputs) {
      if (scope.names.count(input.name) > 0) return IsTwice(input.name);
      OPTRAIL_RETURN_IF_ERROR(define(input.name));
      OPTRAIL_RETURN_IF_ERROR(Rename(scope, input.name));
    }
    // They may be defaults of inputs.
    for (OnnxTensor& one : inner->initializers) {
      if (scope.names.count(one.name) == 0) {
        OPTRAIL_RETURN_IF_ERROR(define(one.name));
      }
      OPTRAIL_RETURN_IF_ERROR(Rename(scope, one.name));
    }
    for (const OnnxNode& node : graph.nodes) {
      for (const std::string& name : node.outputs) {
        if (name.empty()) continue;
        if (scope.names.count(name) > 0) return IsTwice(name);
        OPTRAIL_RETURN_IF_ERROR(define(name));
      }
    }
    for (OnnxValue& output : inner->outputs) {
      OPTRAIL_RETURN_IF_ERROR(Rename(scope, output.name));
    }
    for (const OnnxNode& node : graph.nodes) {
      OPTRAIL_ASSIGN_OR_RETURN(OnnxNode added, InCall(node, call, scope));
      inner->nodes.push_back(std::move(added));
    }
    return inner;
  }

  std::map<Key, const OnnxFunction*> functions_;
  // All names of values, and the last number behind each.
  std::unordered_map<std::string, int64_t> used_;
  int64_t nodes_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace

absl::Status InlineFunctions(const std::vector<OnnxFunction>& functions,
                             OnnxGraph& graph) {
  if (functions.empty()) return absl::OkStatus();
  return Inliner().Run(functions, graph);
}

}  // namespace optrail::graph
