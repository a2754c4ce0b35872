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
#include "graph/onnx/importer.h"
#include "graph/onnx/node_import.h"
#include "graph/onnx/node_order.h"

namespace optrail::graph {
namespace {

constexpr int kMostNotes = 20;
constexpr size_t kMostValues = size_t{1} << 20;

const ImportRules& Rules() {
  static const ImportRules* const rules = [] {
    auto* const made = new ImportRules();
    AddConstantRules(*made);
    AddDetRule(*made);
    AddElementwiseRules(*made);
    AddShapeRules(*made);
    AddIndexRules(*made);
    AddReduceRules(*made);
    AddLayerRules(*made);
    AddLossRules(*made);
    AddNormRules(*made);
    AddQuantiseRules(*made);
    AddRecurrentRules(*made);
    AddResizeRules(*made);
    AddSampleRules(*made);
    AddSignalRules(*made);
    AddUniqueRule(*made);
    return made;
  }();
  return *rules;
}

}  // namespace

absl::StatusOr<Imported> Importer::Run() {
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

void Importer::Note(std::string note) {
  if (result_.notes.size() < kMostNotes) {
    result_.notes.push_back(std::move(note));
  }
}

void Importer::Block(Scope& scope, const OnnxNode& node,
                     const std::string& why) {
  for (const std::string& output : node.outputs) {
    if (!output.empty()) scope.Set(output, {-1, why});
  }
}

absl::Status Importer::AddConstants(const OnnxGraph& graph, Scope& scope) {
  uint64_t place = 0;
  for (const OnnxTensor& tensor : graph.initializers) {
    ++place;
    if (!tensor.problem.empty()) {
      scope.Set(tensor.name, {-1, absl::StrCat("constant ", Quoted(tensor.name),
                                               ": ", tensor.problem)});
      continue;
    }
    Constant constant = tensor.constant;
    if (constant.absent()) {
      constant = FillerOf(tensor.type, options_.seed, place - 1);
    }
    scope.Set(tensor.name, {graph_.AddConstant(tensor.name, tensor.type,
                                               std::move(constant)),
                            ""});
  }
  return absl::OkStatus();
}

absl::Status Importer::CheckDimsAreOfInputs() const {
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

bool Importer::HasBatch(const OnnxValue& value) {
  const Dims& dims = value.type.dims;
  if (dims.empty()) return false;
  if (batch_of_ == nullptr) batch_of_ = &value;
  return dims[0] == batch_of_->type.dims[0] &&
         (dims[0] >= 0 || value.symbols[0] == batch_of_->symbols[0]);
}

absl::StatusOr<TensorType> Importer::Bound(const OnnxValue& value) {
  TensorType type = value.type;
  if (options_.batch > 0 && HasBatch(value)) type.dims[0] = options_.batch;
  for (size_t d = 0; d < type.dims.size(); ++d) {
    if (type.dims[d] >= 0) continue;
    const auto found = options_.dims.find(value.symbols[d]);
    type.dims[d] = found == options_.dims.end() ? 1 : found->second;
    if (found == options_.dims.end()) {
      Note(absl::StrCat("input ", Quoted(value.name), ": dimension ", d, " (",
                        value.symbols[d].empty() ? "unnamed" : value.symbols[d],
                        ") has no size and is taken as 1"));
    }
  }
  const absl::Status status = CheckDims(type.dims);
  if (status.ok()) return type;
  return absl::InvalidArgumentError(
      absl::StrCat("input ", Quoted(value.name), ": ", status.message()));
}

absl::Status Importer::AddInputs() {
  for (const OnnxValue& input : model_.graph.inputs) {
    if (scope_.Find(input.name) != nullptr) continue;  // has a default
    if (!input.problem.empty() || !input.has_shape ||
        input.type.type == proto::ELEMENT_TYPE_UNSPECIFIED) {
      const std::string why =
          input.problem.empty() ? "has no declared shape" : input.problem;
      scope_.Set(input.name,
                 {-1, absl::StrCat("input ", Quoted(input.name), " ", why)});
      result_.uncovered.push_back({input.name, "input", why});
      continue;
    }
    OPTRAIL_ASSIGN_OR_RETURN(const TensorType type, Bound(input));
    const auto known = options_.known_inputs.find(input.name);
    if (known != options_.known_inputs.end()) {
      scope_.Set(input.name,
                 {graph_.AddConstant(input.name, known->second), ""});
      continue;
    }
    scope_.Set(input.name, {graph_.AddInput(input.name, type), ""});
  }
  OPTRAIL_RETURN_IF_ERROR(CheckDimsAreOfInputs());
  for (const OnnxValue& value : model_.graph.values) {
    declared_.emplace(value.name, &value);
  }
  return absl::OkStatus();
}

absl::Status Importer::AddNodes(const OnnxGraph& graph, Scope& scope,
                                int depth) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<int> order, SortedNodes(graph));
  for (const int n : order) {
    OPTRAIL_RETURN_IF_ERROR(AddNode(graph.nodes[n], scope, depth));
  }
  return absl::OkStatus();
}

absl::Status Importer::AddNode(const OnnxNode& node, Scope& scope, int depth) {
  std::vector<int> operands;
  std::string blocked;
  bool has_sequence = false;
  for (const std::string& input : node.inputs) {
    if (input.empty()) {
      operands.push_back(-1);
      continue;
    }
    const Named* const found = scope.Find(input);
    if (found == nullptr) {
      return AtNode(node, absl::InvalidArgumentError(absl::StrCat(
                              "reads ", Quoted(input),
                              ", which no node, input or constant is")));
    }
    if (found->sequence != nullptr) {
      has_sequence = true;
    } else if (found->value < 0) {
      blocked = found->blocked;
    }
    operands.push_back(found->value);
  }
  if (!blocked.empty()) {
    Block(scope, node, blocked);
    ++blocked_nodes_;
    return absl::OkStatus();
  }
  // Loops, branches in them and lists make many nodes out of few.
  if (graph_.values.size() > kMostValues) {
    return AtNode(
        node, absl::InvalidArgumentError(absl::StrCat(
                  "the graph has more than ", kMostValues, " values by now")));
  }
  if (has_sequence || IsOfSequences(node)) {
    return AddSequenceNode(node, operands, scope);
  }
  if (node.op == "If" && node.domain.empty()) {
    return AddBranch(node, operands, scope, depth);
  }
  if ((node.op == "Loop" || node.op == "Scan") && node.domain.empty()) {
    return node.op == "Loop" ? AddLoop(node, operands, scope, depth)
                             : AddScan(node, operands, scope, depth);
  }
  return AddByRule(node, std::move(operands), scope);
}

absl::Status Importer::AddByRule(const OnnxNode& node,
                                 std::vector<int> operands, Scope& scope) {
  const auto rule = node.domain.empty() ? Rules().find(node.op) : Rules().end();
  if (rule == Rules().end()) {
    NotCovered(node, scope,
               node.domain.empty()
                   ? "there is no rule for this operator"
                   : absl::StrCat("operators of domain ", Quoted(node.domain),
                                  " have no rules"));
    return absl::OkStatus();
  }
  const size_t nodes = graph_.nodes.size();
  OnnxNode numbered;
  if (!iteration_.empty()) {
    numbered = node;
    absl::StrAppend(&numbered.name, iteration_);
  }
  NodeImport import(graph_, iteration_.empty() ? node : numbered,
                    std::move(operands),
                    node.opset > 0 ? node.opset : model_.opset, work_);
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

absl::Status Importer::Bind(const OnnxNode& node,
                            const std::vector<int>& results, size_t first_node,
                            Scope& scope) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string& name = node.outputs[i];
    if (name.empty()) continue;
    if (i >= results.size() || results[i] < 0) {
      scope.Set(name,
                {-1, absl::StrCat("result ", i, " of node ", Quoted(node.name),
                                  " (", node.op, ") is not covered")});
      result_.uncovered.push_back(
          {node.name, node.op, absl::StrCat("its result ", i, " has no rule")});
      continue;
    }
    scope.Set(name, {results[i], ""});
    Value& value = graph_.values[results[i]];
    // Not where it is another node's, or an input, by another name.
    if (value.producer >= static_cast<int>(first_node)) value.name = name;
  }
  return absl::OkStatus();
}

void Importer::NotCovered(const OnnxNode& node, Scope& scope,
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
      scope.Set(output, {-1, why});
      continue;
    }
    scope.Set(output, {graph_.AddInput(output, value->type), ""});
    Note(absl::StrCat("result ", Quoted(output), " of node ", Quoted(node.name),
                      " is an input of the graph"));
  }
}

absl::Status Importer::AddOutputs() {
  for (const OnnxValue& output : model_.graph.outputs) {
    const Named* const found = scope_.Find(output.name);
    if (found == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "output ", Quoted(output.name), " is computed by no node"));
    }
    if (found->sequence != nullptr) {
      result_.uncovered.push_back({output.name, "output", "is a sequence"});
      continue;
    }
    if (found->value < 0) {
      Note(absl::StrCat("output ", Quoted(output.name),
                        " is left out: ", found->blocked));
      continue;
    }
    OPTRAIL_RETURN_IF_ERROR(CheckOutput(output, found->value));
    OPTRAIL_ASSIGN_OR_RETURN(const int value,
                             Called(output.name, found->value));
    graph_.outputs.push_back(value);
  }
  if (blocked_nodes_ > 0) {
    Note(absl::StrCat(blocked_nodes_,
                      " nodes need results of nodes that are not covered"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Importer::Called(const std::string& name, int value) {
  const std::vector<int>& outputs = graph_.outputs;
  if (graph_.values[value].name == name) return value;
  if (graph_.values[value].producer < 0 ||
      std::find(outputs.begin(), outputs.end(), value) != outputs.end()) {
    return graph_.AddNode(name, "reshape", {value},
                          {{"dims", graph_.type(value).dims}});
  }
  graph_.values[value].name = name;
  return value;
}

absl::Status Importer::CheckOutput(const OnnxValue& output, int value) {
  const TensorType& type = graph_.type(value);
  bool fits = output.type.type == proto::ELEMENT_TYPE_UNSPECIFIED ||
              output.type.type == type.type;
  if (output.has_shape) {
    fits = fits && output.type.dims.size() == type.dims.size();
    for (size_t d = 0; fits && d < type.dims.size(); ++d) {
      fits = output.type.dims[d] < 0 || output.type.dims[d] == type.dims[d] ||
             (d == 0 && options_.batch > 0);
    }
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("output ", Quoted(output.name), " is declared as ",
                   TypeText(output.type), ", but is ", TypeText(type)));
}

void Importer::CountAbsent() {
  for (const Value& value : result_.graph.values) {
    if (value.constant == nullptr || !value.constant->absent()) continue;
    ++result_.absent_constants;
    result_.absent_bytes += value.type.bytes();
  }
}

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

absl::Status CheckCovered(const Imported& imported, const std::string& path) {
  if (imported.uncovered.empty()) return absl::OkStatus();
  const Uncovered& first = imported.uncovered.front();
  return absl::FailedPreconditionError(absl::StrCat(
      path, ": ", imported.uncovered.size(), " not covered, the first: node ",
      Quoted(first.node), " (", absl::CEscape(first.op),
      "): ", absl::CEscape(first.reason), "; next: optrail graph show ", path));
}

std::vector<std::string> ImportedOperators() {
  std::vector<std::string> names = {"If", "Loop", "Scan"};
  for (const char* const name : kSequenceOperators) names.push_back(name);
  for (const auto& [name, rule] : Rules()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace optrail::graph
