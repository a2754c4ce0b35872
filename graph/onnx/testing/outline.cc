#include "graph/onnx/testing/outline.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/unknown_field_set.h"

namespace optrail::graph {
namespace {

using NodeList = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

// Fields that ONNX 1.12 does not know.
constexpr int kOverloadOfNode = 8, kOverloadOfFunction = 13, kDefault = 11;

constexpr int kMostMoved = 4;

template <class Message>
void SetNewer(Message& message, int field, const std::string& text) {
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(
      field, text);
}

// Nodes in one list, and everything that may name a value of it.
struct Owner {
  NodeList* nodes = nullptr;
  onnx::GraphProto* root_graph = nullptr;  // one of the two
  onnx::FunctionProto* root_function = nullptr;
};

void AddOwners(NodeList& nodes, const Owner& root, std::vector<Owner>& owners) {
  Owner owner = root;
  owner.nodes = &nodes;
  owners.push_back(owner);
  for (onnx::NodeProto& node : nodes) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (!attribute.has_g()) continue;
      AddOwners(*attribute.mutable_g()->mutable_node(), root, owners);
    }
  }
}

std::vector<Owner> OwnersOf(onnx::ModelProto& model) {
  std::vector<Owner> owners;
  Owner graph;
  graph.root_graph = model.mutable_graph();
  AddOwners(*graph.root_graph->mutable_node(), graph, owners);
  for (onnx::FunctionProto& function : *model.mutable_functions()) {
    Owner root;
    root.root_function = &function;
    AddOwners(*function.mutable_node(), root, owners);
  }
  return owners;
}

void AddReads(const NodeList& nodes, std::set<std::string>& names) {
  for (const onnx::NodeProto& node : nodes) {
    names.insert(node.input().begin(), node.input().end());
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (!attribute.has_g()) continue;
      AddReads(attribute.g().node(), names);
      for (const auto& output : attribute.g().output()) {
        names.insert(output.name());
      }
    }
  }
}

// Names that anything in the graph or function reads.
std::set<std::string> ReadsOf(const Owner& owner) {
  std::set<std::string> names;
  if (owner.root_function != nullptr) {
    AddReads(owner.root_function->node(), names);
    names.insert(owner.root_function->output().begin(),
                 owner.root_function->output().end());
    return names;
  }
  AddReads(owner.root_graph->node(), names);
  for (const auto& output : owner.root_graph->output()) {
    names.insert(output.name());
  }
  return names;
}

void AddNames(const NodeList& nodes, std::set<std::string>& names) {
  for (const onnx::NodeProto& node : nodes) {
    names.insert(node.input().begin(), node.input().end());
    names.insert(node.output().begin(), node.output().end());
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (!attribute.has_g()) continue;
      AddNames(attribute.g().node(), names);
      for (const auto& one : attribute.g().initializer()) {
        names.insert(one.name());
      }
      for (const auto* const list :
           {&attribute.g().input(), &attribute.g().output()}) {
        for (const auto& value : *list) names.insert(value.name());
      }
    }
  }
}

// All names of values; of functions, too, which are worth to clash with.
std::set<std::string> NamesOf(const onnx::ModelProto& model) {
  std::set<std::string> names;
  AddNames(model.graph().node(), names);
  for (const auto& function : model.functions()) {
    AddNames(function.node(), names);
    names.insert(function.input().begin(), function.input().end());
  }
  for (const auto& one : model.graph().initializer()) names.insert(one.name());
  for (const auto* const list :
       {&model.graph().input(), &model.graph().output(),
        &model.graph().value_info()}) {
    for (const auto& value : *list) names.insert(value.name());
  }
  names.erase("");
  return names;
}

bool HasGraph(const onnx::NodeProto& node) {
  return std::any_of(node.attribute().begin(), node.attribute().end(),
                     [](const onnx::AttributeProto& attribute) {
                       return attribute.has_g() ||
                              attribute.type() == onnx::AttributeProto::GRAPH ||
                              attribute.graphs_size() > 0;
                     });
}

// No node reads what a later one computes, and no name is computed twice.
bool IsInOrder(const NodeList& nodes) {
  std::set<std::string> computed, read;
  for (const onnx::NodeProto& node : nodes) {
    NodeList one;
    *one.Add() = node;
    AddReads(one, read);
    for (const std::string& name : node.output()) {
      if (name.empty()) continue;
      if (read.count(name) > 0 || !computed.insert(name).second) return false;
    }
  }
  return true;
}

class Outliner {
 public:
  Outliner(onnx::ModelProto& model, Rng& rng)
      : model_(model), rng_(rng), all_(NamesOf(model)) {
    pool_.assign(all_.begin(), all_.end());
    for (const char* const name : {"a", "b", "c", "x/y"}) pool_.push_back(name);
  }

  bool Run() {
    std::vector<Owner> owners = OwnersOf(model_);
    const Owner owner = owners[rng_.UniformInt(owners.size())];
    NodeList& nodes = *owner.nodes;
    if (nodes.empty() || !IsInOrder(nodes)) return false;
    const int begin = static_cast<int>(rng_.UniformInt(nodes.size()));
    int end = begin;
    while (end < nodes.size() && end < begin + kMostMoved &&
           !HasGraph(nodes[end]) && (end == begin || !Chance(.3))) {
      ++end;
    }
    if (end == begin) return false;
    NodeList moved, rest;
    for (int i = 0; i < nodes.size(); ++i) {
      if (i == begin) rest.Add();  // the call
      *(i >= begin && i < end ? moved : rest).Add() = nodes[i];
    }
    nodes.Swap(&rest);
    Make(owner, moved, begin);
    return true;
  }

 private:
  bool Chance(double part) { return rng_.UniformReal() < part; }

  // A name that `used` lacks: of anything in the model, or a new one.
  std::string Pick(std::set<std::string>& used, const std::string& own) {
    std::string name = Chance(.3) ? own : pool_[rng_.UniformInt(pool_.size())];
    while (name.empty() || !used.insert(name).second) {
      name = absl::StrCat("v", rng_.UniformInt(1000));
    }
    return name;
  }

  std::string NewName() {
    for (;;) {
      std::string name = absl::StrCat("new", rng_.UniformInt(1'000'000));
      if (all_.insert(name).second) return name;
    }
  }

  void Make(const Owner& owner, NodeList& moved, int place) {
    // `owner` may lie in a function, which must not move in memory.
    onnx::FunctionProto function;
    onnx::NodeProto call;
    NameFunction(function, call);
    SetOpset(owner, function);
    NameInputs(moved, function, call);
    NameOutputs(owner, function, call);
    for (onnx::NodeProto& node : moved) MoveAttributes(node, function, call);
    *function.mutable_node() = moved;
    call.set_name(Chance(.5) ? "n" : moved[0].name());
    (*owner.nodes)[place] = call;
    if (Chance(.3)) CallAgain(*owner.nodes, place);
    *model_.add_functions() = std::move(function);
  }

  void NameFunction(onnx::FunctionProto& function, onnx::NodeProto& call) {
    std::string name = absl::StrCat("F", model_.functions_size());
    const std::string overload = NewName();
    if (Chance(.3)) {
      name = "F";
      SetNewer(function, kOverloadOfFunction, overload);
      SetNewer(call, kOverloadOfNode, overload);
    } else if (std::any_of(
                   model_.functions().begin(), model_.functions().end(),
                   [&](const auto& other) { return other.name() == name; })) {
      name = overload;
    }
    function.set_name(name);
    function.set_domain("own");
    call.set_op_type(name);
    call.set_domain("own");
  }

  // A function without a version of its own has the model's.
  void SetOpset(const Owner& owner, onnx::FunctionProto& function) {
    const onnx::FunctionProto* const from = owner.root_function;
    if (from != nullptr && from->opset_import_size() > 0) {
      *function.mutable_opset_import() = from->opset_import();
    } else if (Chance(.5)) {
      *function.mutable_opset_import() = model_.opset_import();
    }
  }

  // Names what the nodes read and none of them computes; absent inputs may
  // become inputs that the call leaves out.
  void NameInputs(NodeList& moved, onnx::FunctionProto& function,
                  onnx::NodeProto& call) {
    std::set<std::string> computed;
    for (onnx::NodeProto& node : moved) {
      for (std::string& name : *node.mutable_input()) {
        if (computed.count(name) > 0) {
          name = inner_.at(name);
          continue;
        }
        if (name.empty() && !Chance(.5)) continue;
        const auto known = formals_.find(name);
        if (known != formals_.end() && !name.empty()) {
          name = known->second;
          continue;
        }
        const std::string formal = Pick(used_, name);
        formals_[name] = formal;
        function.add_input(formal);
        call.add_input(name);
        name = formal;
      }
      for (std::string& name : *node.mutable_output()) {
        if (name.empty()) continue;
        computed.insert(name);
        inner_[name] = Pick(used_, name);
        name = inner_[name];
      }
    }
    while (call.input_size() > 0 && Chance(.5) &&
           call.input(call.input_size() - 1).empty()) {
      call.mutable_input()->RemoveLast();
    }
  }

  void NameOutputs(const Owner& owner, onnx::FunctionProto& function,
                   onnx::NodeProto& call) {
    const std::set<std::string> reads = ReadsOf(owner);
    for (const auto& [name, inner] : inner_) {
      const bool wanted = reads.count(name) > 0;
      if (!wanted && !Chance(.2)) continue;
      function.add_output(inner);
      call.add_output(wanted ? name : "");
    }
  }

  // Attributes by reference must be the call's, in a function another one's.
  void MoveAttributes(onnx::NodeProto& node, onnx::FunctionProto& function,
                      onnx::NodeProto& call) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      const bool refers = !attribute.ref_attr_name().empty();
      if (!refers && !Chance(.4)) continue;
      onnx::AttributeProto given = attribute;
      given.set_name(Pick(attributes_, attribute.name()));
      const std::string name = attribute.name();
      attribute.Clear();
      attribute.set_name(name);
      attribute.set_type(given.type());
      attribute.set_ref_attr_name(given.name());
      if (!refers && Chance(.3)) {
        SetNewer(function, kDefault, given.SerializeAsString());
      } else {
        function.add_attribute(given.name());
        *call.add_attribute() = given;
      }
    }
  }

  // One reader behind the call reads what a second call computes.
  void CallAgain(NodeList& nodes, int place) {
    onnx::NodeProto again = nodes[place];
    for (std::string& output : *again.mutable_output()) {
      if (output.empty()) continue;
      const std::string old = output;
      output = NewName();
      for (int i = place + 1; i < nodes.size(); ++i) {
        for (std::string& input : *nodes[i].mutable_input()) {
          if (input == old && Chance(.5)) input = output;
        }
      }
    }
    NodeList with;
    for (int i = 0; i < nodes.size(); ++i) {
      *with.Add() = nodes[i];
      if (i == place) *with.Add() = again;
    }
    nodes.Swap(&with);
  }

  onnx::ModelProto& model_;
  Rng& rng_;
  std::set<std::string> all_;
  std::vector<std::string> pool_;
  // Names that the function has, and those by the names in the owner.
  std::set<std::string> used_, attributes_;
  std::map<std::string, std::string> formals_, inner_;
};

}  // namespace

bool Outline(onnx::ModelProto& model, Rng& rng) {
  return Outliner(model, rng).Run();
}

void Disturb(onnx::ModelProto& model, Rng& rng) {
  std::vector<Owner> owners = OwnersOf(model);
  const std::set<std::string> all = NamesOf(model);
  const std::vector<std::string> names(all.begin(), all.end());
  NodeList& nodes = *owners[rng.UniformInt(owners.size())].nodes;
  const auto pick = [&](auto& list) -> auto& {
    return list[static_cast<int>(rng.UniformInt(list.size()))];
  };
  const auto name = [&] {
    return names.empty() || rng.UniformInt(6) == 0 ? "" : pick(names);
  };
  const int64_t kind = rng.UniformInt(6);
  if (kind == 0 && model.functions_size() > 0) {
    const onnx::FunctionProto& function = pick(*model.mutable_functions());
    onnx::NodeProto& call = *nodes.Add();
    call.set_op_type(function.name());
    call.set_domain(function.domain());
    for (int i = 0; i < function.input_size(); ++i) call.add_input(name());
    for (int i = 0; i < function.output_size(); ++i) call.add_output(name());
    return;
  }
  if (kind == 1 && model.functions_size() > 0) {
    onnx::FunctionProto copy = pick(*model.mutable_functions());
    if (rng.UniformInt(2) == 0) copy.set_name("F0");
    *model.add_functions() = copy;
    return;
  }
  if (nodes.empty()) return;
  onnx::NodeProto& node = pick(nodes);
  auto& list =
      rng.UniformInt(2) == 0 ? *node.mutable_input() : *node.mutable_output();
  if (kind == 2 && !list.empty()) pick(list) = name();
  if (kind == 3 && !list.empty()) list.RemoveLast();
  if (node.attribute_size() == 0) return;
  if (kind == 4) node.mutable_attribute()->RemoveLast();
  if (kind == 5) {
    onnx::AttributeProto& attribute = pick(*node.mutable_attribute());
    const onnx::NodeProto& other = pick(nodes);
    attribute.set_ref_attr_name(
        other.attribute_size() > 0 ? other.attribute(0).name() : name());
  }
}

}  // namespace optrail::graph
