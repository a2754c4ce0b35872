#include "graph/onnx/import.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "graph/ir/ops.h"
#include "graph/onnx/node_import.h"

namespace optrail::graph {
namespace {

// Elements that a model may have computed from its constants at import.
constexpr int64_t kMostWork = int64_t{1} << 28;
constexpr int kMostNotes = 20;
constexpr int kMostBranchDepth = 8;

std::string Quoted(absl::string_view name) {
  return absl::StrCat("\"", absl::CEscape(name.substr(0, 200)), "\"");
}

absl::Status AtNode(const OnnxNode& node, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("node ", Quoted(node.name), " (", node.op,
                                   "): ", status.message()));
}

const ImportRules& Rules() {
  static const ImportRules* const rules = [] {
    auto* const made = new ImportRules();
    AddElementwiseRules(*made);
    AddShapeRules(*made);
    AddIndexRules(*made);
    AddReduceRules(*made);
    AddLayerRules(*made);
    AddNormRules(*made);
    AddResizeRules(*made);
    return made;
  }();
  return *rules;
}

// Nodes in an order in which each stands after those that it reads. Models are
// meant to be so already.
absl::StatusOr<std::vector<int>> SortedNodes(const OnnxGraph& graph) {
  const int count = static_cast<int>(graph.nodes.size());
  std::map<absl::string_view, int> producer;
  for (int n = 0; n < count; ++n) {
    for (const std::string& output : graph.nodes[n].outputs) {
      if (output.empty()) continue;
      if (!producer.emplace(output, n).second) {
        return AtNode(graph.nodes[n],
                      absl::InvalidArgumentError(absl::StrCat(
                          "computes ", Quoted(output), ", as does node ",
                          Quoted(graph.nodes[producer[output]].name))));
      }
    }
  }
  std::vector<int> missing(count, 0), order;
  std::vector<std::vector<int>> readers(count);
  for (int n = 0; n < count; ++n) {
    for (const std::string& input : graph.nodes[n].inputs) {
      const auto found = producer.find(input);
      if (input.empty() || found == producer.end()) continue;
      readers[found->second].push_back(n);
      ++missing[n];
    }
  }
  std::set<int> ready;
  for (int n = 0; n < count; ++n) {
    if (missing[n] == 0) ready.insert(n);
  }
  while (!ready.empty()) {
    const int n = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(n);
    for (const int reader : readers[n]) {
      if (--missing[reader] == 0) ready.insert(reader);
    }
  }
  for (int n = 0; n < count && order.size() < graph.nodes.size(); ++n) {
    if (missing[n] > 0) {
      return AtNode(graph.nodes[n],
                    absl::InvalidArgumentError(
                        "is part of a cycle, or reads a result of one"));
    }
  }
  return order;
}

// What a name stands for while a graph is imported.
struct Named {
  int value = -1;
  std::string blocked;  // why there is no value
};
using Scope = std::map<std::string, Named, std::less<>>;

class Importer {
 public:
  Importer(const OnnxModel& model, const ImportOptions& options)
      : model_(model), options_(options) {}

  absl::StatusOr<Imported> Run() {
    graph_.name = model_.graph.name;
    OPTRAIL_RETURN_IF_ERROR(AddConstants(model_.graph, scope_));
    OPTRAIL_RETURN_IF_ERROR(AddInputs());
    OPTRAIL_RETURN_IF_ERROR(AddNodes(model_.graph, scope_, 0));
    OPTRAIL_RETURN_IF_ERROR(AddOutputs());
    result_.onnx_nodes = static_cast<int>(model_.graph.nodes.size());
    result_.graph = WithoutUnused(graph_);
    CountAbsent();
    return std::move(result_);
  }

 private:
  void Note(std::string note) {
    if (result_.notes.size() < kMostNotes) {
      result_.notes.push_back(std::move(note));
    }
  }

  void Block(Scope& scope, const OnnxNode& node, const std::string& why) {
    for (const std::string& output : node.outputs) {
      if (!output.empty()) scope[output] = {-1, why};
    }
  }

  absl::Status AddConstants(const OnnxGraph& graph, Scope& scope) {
    uint64_t place = 0;
    for (const OnnxTensor& tensor : graph.initializers) {
      ++place;
      if (!tensor.problem.empty()) {
        scope[tensor.name] = {-1, absl::StrCat("constant ", Quoted(tensor.name),
                                               ": ", tensor.problem)};
        continue;
      }
      Constant constant = tensor.constant;
      if (constant.absent()) {
        constant = FillerOf(tensor.type, options_.seed, place - 1);
      }
      scope[tensor.name].value =
          graph_.AddConstant(tensor.name, tensor.type, std::move(constant));
    }
    return absl::OkStatus();
  }

  // InvalidArgument names a dimension that no input has.
  absl::Status CheckDimsAreOfInputs() const {
    std::set<std::string> known;
    for (const OnnxValue& input : model_.graph.inputs) {
      for (const std::string& symbol : input.symbols) {
        if (!symbol.empty()) known.insert(symbol);
      }
    }
    for (const auto& [name, size] : options_.dims) {
      if (known.count(name) > 0) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "dimension ", Quoted(name), ": no input has it, expected ",
          known.empty() ? "none, since all sizes are known"
                        : absl::StrCat("one of ", absl::StrJoin(known, ", "))));
    }
    return absl::OkStatus();
  }

  // Dimensions without a size get one.
  absl::StatusOr<TensorType> Bound(const OnnxValue& value) {
    TensorType type = value.type;
    for (size_t d = 0; d < type.dims.size(); ++d) {
      if (type.dims[d] >= 0) continue;
      const auto found = options_.dims.find(value.symbols[d]);
      type.dims[d] = found == options_.dims.end() ? 1 : found->second;
      if (found == options_.dims.end()) {
        Note(absl::StrCat(
            "input ", Quoted(value.name), ": dimension ", d, " (",
            value.symbols[d].empty() ? "unnamed" : value.symbols[d],
            ") has no size and is taken as 1"));
      }
    }
    const absl::Status status = CheckDims(type.dims);
    if (status.ok()) return type;
    return absl::InvalidArgumentError(
        absl::StrCat("input ", Quoted(value.name), ": ", status.message()));
  }

  absl::Status AddInputs() {
    for (const OnnxValue& input : model_.graph.inputs) {
      if (scope_.count(input.name) != 0) continue;  // has a default
      if (!input.problem.empty() || !input.has_shape ||
          input.type.type == proto::ELEMENT_TYPE_UNSPECIFIED) {
        const std::string why =
            input.problem.empty() ? "has no declared shape" : input.problem;
        scope_[input.name] = {
            -1, absl::StrCat("input ", Quoted(input.name), " ", why)};
        result_.uncovered.push_back({input.name, "input", why});
        continue;
      }
      OPTRAIL_ASSIGN_OR_RETURN(const TensorType type, Bound(input));
      const auto known = options_.known_inputs.find(input.name);
      if (known != options_.known_inputs.end()) {
        scope_[input.name].value =
            graph_.AddConstant(input.name, known->second);
        continue;
      }
      scope_[input.name].value = graph_.AddInput(input.name, type);
    }
    OPTRAIL_RETURN_IF_ERROR(CheckDimsAreOfInputs());
    for (const OnnxValue& value : model_.graph.values) {
      declared_.emplace(value.name, &value);
    }
    return absl::OkStatus();
  }

  absl::Status AddNodes(const OnnxGraph& graph, Scope& scope, int depth) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<int> order, SortedNodes(graph));
    for (const int n : order) {
      OPTRAIL_RETURN_IF_ERROR(AddNode(graph.nodes[n], scope, depth));
    }
    return absl::OkStatus();
  }

  absl::Status AddNode(const OnnxNode& node, Scope& scope, int depth) {
    std::vector<int> operands;
    std::string blocked;
    for (const std::string& input : node.inputs) {
      if (input.empty()) {
        operands.push_back(-1);
        continue;
      }
      const auto found = scope.find(input);
      if (found == scope.end()) {
        return AtNode(node, absl::InvalidArgumentError(absl::StrCat(
                                "reads ", Quoted(input),
                                ", which no node, input or constant is")));
      }
      if (found->second.value < 0) blocked = found->second.blocked;
      operands.push_back(found->second.value);
    }
    if (!blocked.empty()) {
      Block(scope, node, blocked);
      ++blocked_nodes_;
      return absl::OkStatus();
    }
    if (node.op == "If" && node.domain.empty()) {
      return AddBranch(node, operands, scope, depth);
    }
    return AddByRule(node, std::move(operands), scope);
  }

  absl::Status AddByRule(const OnnxNode& node, std::vector<int> operands,
                         Scope& scope) {
    const auto rule =
        node.domain.empty() ? Rules().find(node.op) : Rules().end();
    if (rule == Rules().end()) {
      NotCovered(node, scope,
                 node.domain.empty()
                     ? "there is no rule for this operator"
                     : absl::StrCat("operators of domain ", Quoted(node.domain),
                                    " have no rules"));
      return absl::OkStatus();
    }
    const size_t nodes = graph_.nodes.size();
    NodeImport import(graph_, node, std::move(operands), model_.opset, work_);
    const std::vector<int> results = rule->second(import);
    if (!import.ok()) {
      // Nodes that the rule added before stay unused, and go in the end.
      if (import.status().code() != absl::StatusCode::kUnimplemented) {
        return AtNode(node, import.status());
      }
      NotCovered(node, scope, std::string(import.status().message()));
      return absl::OkStatus();
    }
    return Bind(node, results, nodes, scope);
  }

  absl::Status Bind(const OnnxNode& node, const std::vector<int>& results,
                    size_t first_node, Scope& scope) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const std::string& name = node.outputs[i];
      if (name.empty()) continue;
      if (i >= results.size() || results[i] < 0) {
        scope[name] = {
            -1, absl::StrCat("result ", i, " of node ", Quoted(node.name), " (",
                             node.op, ") is not covered")};
        result_.uncovered.push_back(
            {node.name, node.op,
             absl::StrCat("its result ", i, " has no rule")});
        continue;
      }
      scope[name].value = results[i];
      Value& value = graph_.values[results[i]];
      // Not where it is another node's, or an input, by another name.
      if (value.producer >= static_cast<int>(first_node)) value.name = name;
    }
    return absl::OkStatus();
  }

  // The results become inputs where the model says what they are.
  void NotCovered(const OnnxNode& node, Scope& scope,
                  const std::string& reason) {
    result_.uncovered.push_back({node.name, node.op, reason});
    const std::string why =
        absl::StrCat("needs node ", Quoted(node.name), " (", node.op, ")");
    for (const std::string& output : node.outputs) {
      if (output.empty()) continue;
      const auto found = declared_.find(output);
      const OnnxValue* const value =
          found == declared_.end() ? nullptr : found->second;
      if (value == nullptr || !value->problem.empty() || !value->has_shape ||
          value->type.type == proto::ELEMENT_TYPE_UNSPECIFIED ||
          !CheckDims(value->type.dims).ok()) {
        scope[output] = {-1, why};
        continue;
      }
      scope[output].value = graph_.AddInput(output, value->type);
      Note(absl::StrCat("result ", Quoted(output), " of node ",
                        Quoted(node.name), " is an input of the graph"));
    }
  }

  // A condition that is known chooses a branch when the model is imported.
  absl::Status AddBranch(const OnnxNode& node, const std::vector<int>& operands,
                         Scope& scope, int depth) {
    const Value* const condition = operands.empty() || operands[0] < 0
                                       ? nullptr
                                       : &graph_.values[operands[0]];
    if (condition == nullptr || condition->type.type != proto::ELEMENT_BOOL ||
        Elements(condition->type.dims) != 1) {
      return AtNode(node, absl::InvalidArgumentError(
                              "expected one boolean as its condition"));
    }
    if (condition->constant == nullptr || condition->constant->absent()) {
      NotCovered(node, scope, "the condition is no constant");
      return absl::OkStatus();
    }
    const bool is_true = (*condition->constant->bytes)[0] != 0;
    const auto found =
        node.attributes.find(is_true ? "then_branch" : "else_branch");
    if (found == node.attributes.end() || found->second.graph == nullptr ||
        depth >= kMostBranchDepth) {
      return AtNode(node, absl::InvalidArgumentError("has no such branch"));
    }
    const OnnxGraph& branch = *found->second.graph;
    Scope inner = scope;
    OPTRAIL_RETURN_IF_ERROR(AddConstants(branch, inner));
    OPTRAIL_RETURN_IF_ERROR(AddNodes(branch, inner, depth + 1));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const auto result = i < branch.outputs.size()
                              ? inner.find(branch.outputs[i].name)
                              : inner.end();
      if (result == inner.end()) {
        return AtNode(node, absl::InvalidArgumentError(
                                absl::StrCat("its branch has no result ", i)));
      }
      scope[node.outputs[i]] = result->second;
    }
    return absl::OkStatus();
  }

  absl::Status AddOutputs() {
    for (const OnnxValue& output : model_.graph.outputs) {
      const auto found = scope_.find(output.name);
      if (found == scope_.end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "output ", Quoted(output.name), " is computed by no node"));
      }
      if (found->second.value < 0) {
        Note(absl::StrCat("output ", Quoted(output.name),
                          " is left out: ", found->second.blocked));
        continue;
      }
      OPTRAIL_RETURN_IF_ERROR(CheckOutput(output, found->second.value));
      graph_.outputs.push_back(found->second.value);
    }
    if (blocked_nodes_ > 0) {
      Note(absl::StrCat(blocked_nodes_,
                        " nodes need results of nodes that are not covered"));
    }
    return absl::OkStatus();
  }

  // What the model declares of its output must be what comes out.
  absl::Status CheckOutput(const OnnxValue& output, int value) {
    const TensorType& type = graph_.type(value);
    bool fits = output.type.type == proto::ELEMENT_TYPE_UNSPECIFIED ||
                output.type.type == type.type;
    if (output.has_shape) {
      fits = fits && output.type.dims.size() == type.dims.size();
      for (size_t d = 0; fits && d < type.dims.size(); ++d) {
        fits = output.type.dims[d] < 0 || output.type.dims[d] == type.dims[d];
      }
    }
    if (fits) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("output ", Quoted(output.name), " is declared as ",
                     TypeText(output.type), ", but is ", TypeText(type)));
  }

  void CountAbsent() {
    for (const Value& value : result_.graph.values) {
      if (value.constant == nullptr || !value.constant->absent()) continue;
      ++result_.absent_constants;
      result_.absent_bytes += value.type.bytes();
    }
  }

  const OnnxModel& model_;
  const ImportOptions& options_;
  Graph graph_;
  Scope scope_;
  std::map<absl::string_view, const OnnxValue*> declared_;
  Imported result_;
  int64_t work_ = kMostWork;
  int64_t blocked_nodes_ = 0;
};

}  // namespace

Constant FillerOf(const TensorType& type, uint64_t seed, uint64_t place) {
  const Dims& dims = type.dims;
  int64_t fan = dims.empty() ? 1 : dims[0];
  if (dims.size() == 4) fan = dims[1] * dims[2] * dims[3];
  Constant filler;
  filler.seed = seed * 1'000'003 + place + 1;
  filler.deviation =
      1 / std::sqrt(static_cast<double>(std::max<int64_t>(fan, 1)));
  return filler;
}

absl::StatusOr<Imported> ImportOnnxModel(const OnnxModel& model,
                                         const ImportOptions& options) {
  return Importer(model, options).Run();
}

absl::StatusOr<Imported> ImportOnnx(const std::string& path,
                                    const ImportOptions& options) {
  OPTRAIL_ASSIGN_OR_RETURN(const OnnxModel model, ReadOnnxModel(path));
  absl::StatusOr<Imported> imported = ImportOnnxModel(model, options);
  if (!imported.ok()) {
    return absl::Status(imported.status().code(),
                        absl::StrCat(path, ": ", imported.status().message()));
  }
  return imported;
}

std::vector<std::string> ImportedOperators() {
  std::vector<std::string> names = {"If"};
  for (const auto& [name, rule] : Rules()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace optrail::graph
