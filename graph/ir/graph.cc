#include "graph/ir/graph.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "graph/ir/ops.h"

namespace optrail::graph {
namespace {

// Uniform values do as well as normal ones for filling, and cost a fraction for
// hundreds of millions of weights.
std::string Filler(const TensorType& type, const Constant& constant) {
  Array array = Array::Zeros(type);
  if (array.is_real()) {
    Rng rng(constant.seed);
    const double width = constant.deviation * std::sqrt(12.0);
    for (double& value : array.reals) {
      value = width * (rng.UniformReal() - 0.5);
    }
  }
  return array.Encode();
}

absl::Status At(const Node& node, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("node \"", node.name, "\" (", node.op,
                                   "): ", status.message()));
}

absl::Status CheckOperands(const Graph& graph, const Node& node,
                           const std::vector<bool>& known) {
  for (const int input : node.inputs) {
    if (input == -1) continue;
    if (input < -1 || input >= static_cast<int>(graph.values.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", input, " is no value of the graph"));
    }
    if (!known[input]) {
      return absl::InvalidArgumentError(
          absl::StrCat("reads \"", graph.values[input].name,
                       "\", which is computed later or never"));
    }
  }
  return absl::OkStatus();
}

TypeList TypesOf(const Graph& graph, const std::vector<int>& values) {
  TypeList types;
  for (const int value : values) {
    types.push_back(value == -1 ? nullptr : &graph.values[value].type);
  }
  return types;
}

absl::Status CheckNode(const Graph& graph, int index,
                       std::vector<bool>& known) {
  const Node& node = graph.nodes[index];
  OPTRAIL_RETURN_IF_ERROR(CheckOperands(graph, node, known));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TensorType> types,
                           InferTypes(node, TypesOf(graph, node.inputs)));
  if (types.size() != node.outputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.outputs.size(), " results; expected ", types.size()));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const int output = node.outputs[i];
    if (output < 0 || output >= static_cast<int>(graph.values.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("result ", output, " is no value of the graph"));
    }
    const Value& value = graph.values[output];
    if (known[output] || value.producer != index) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", value.name, "\" has another origin, too"));
    }
    if (!(value.type == types[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", value.name, "\" is ", TypeText(value.type),
                       "; expected ", TypeText(types[i])));
    }
    known[output] = true;
  }
  return absl::OkStatus();
}

}  // namespace

std::string ConstantBytes(const TensorType& type, const Constant& constant) {
  return constant.absent() ? Filler(type, constant) : *constant.bytes;
}

Array ConstantArray(const TensorType& type, const Constant& constant) {
  absl::StatusOr<Array> array =
      constant.absent() ? Array::Decode(type, Filler(type, constant))
                        : Array::Decode(type, *constant.bytes);
  OPTRAIL_CHECK(array.ok()) << array.status().message();
  return *std::move(array);
}

int64_t Node::Int(absl::string_view attribute, int64_t otherwise) const {
  const auto found = attributes.find(attribute);
  if (found == attributes.end()) return otherwise;
  const int64_t* const value = std::get_if<int64_t>(&found->second);
  return value == nullptr ? otherwise : *value;
}

double Node::Real(absl::string_view attribute, double otherwise) const {
  const auto found = attributes.find(attribute);
  if (found == attributes.end()) return otherwise;
  const double* const value = std::get_if<double>(&found->second);
  return value == nullptr ? otherwise : *value;
}

std::string Node::Text(absl::string_view attribute) const {
  const auto found = attributes.find(attribute);
  if (found == attributes.end()) return "";
  const std::string* const value = std::get_if<std::string>(&found->second);
  return value == nullptr ? "" : *value;
}

Dims Node::Ints(absl::string_view attribute) const {
  const auto found = attributes.find(attribute);
  if (found == attributes.end()) return {};
  const Dims* const value = std::get_if<Dims>(&found->second);
  return value == nullptr ? Dims() : *value;
}

int Graph::AddInput(std::string name, TensorType type) {
  const int id = static_cast<int>(values.size());
  values.push_back({std::move(name), std::move(type), -1, nullptr});
  inputs.push_back(id);
  return id;
}

int Graph::AddConstant(std::string name, const Array& array) {
  return AddConstant(
      std::move(name), array.type,
      Constant{std::make_shared<const std::string>(array.Encode())});
}

int Graph::AddConstant(std::string name, TensorType type, Constant constant) {
  const int id = static_cast<int>(values.size());
  values.push_back({std::move(name), std::move(type), -1,
                    std::make_shared<const Constant>(std::move(constant))});
  return id;
}

absl::StatusOr<int> Graph::AddNode(std::string name, std::string op,
                                   std::vector<int> node_inputs,
                                   Attributes attributes) {
  Node node{std::move(name),
            std::move(op),
            std::move(node_inputs),
            {},
            std::move(attributes)};
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TensorType> types,
                           InferTypes(node, TypesOf(*this, node.inputs)));
  const int first = static_cast<int>(values.size());
  for (size_t i = 0; i < types.size(); ++i) {
    node.outputs.push_back(static_cast<int>(values.size()));
    values.push_back({i == 0 ? node.name : absl::StrCat(node.name, ":", i),
                      types[i], static_cast<int>(nodes.size()), nullptr});
  }
  nodes.push_back(std::move(node));
  return first;
}

std::vector<std::vector<int>> Graph::Consumers() const {
  std::vector<std::vector<int>> consumers(values.size());
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (const int input : nodes[n].inputs) {
      if (input < 0) continue;
      std::vector<int>& readers = consumers[input];
      if (readers.empty() || readers.back() != static_cast<int>(n)) {
        readers.push_back(static_cast<int>(n));
      }
    }
  }
  return consumers;
}

absl::Status Validate(const Graph& graph) {
  std::vector<bool> known(graph.values.size(), false);
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    const absl::Status status = CheckDims(value.type.dims);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("value \"", value.name, "\": ", status.message()));
    }
    if (value.constant != nullptr && !value.constant->absent() &&
        static_cast<int64_t>(value.constant->bytes->size()) !=
            value.type.bytes()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "constant \"", value.name, "\": ", value.constant->bytes->size(),
          " bytes; expected ", value.type.bytes()));
    }
    known[v] = value.constant != nullptr;
  }
  for (const int input : graph.inputs) {
    if (input < 0 || input >= static_cast<int>(known.size()) || known[input] ||
        graph.values[input].producer != -1) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", input, " is no free value of the graph"));
    }
    known[input] = true;
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const absl::Status status = CheckNode(graph, static_cast<int>(n), known);
    if (!status.ok()) return At(graph.nodes[n], status);
  }
  for (const int output : graph.outputs) {
    if (output < 0 || output >= static_cast<int>(known.size()) ||
        !known[output]) {
      return absl::InvalidArgumentError(
          absl::StrCat("output ", output, " is computed by no node"));
    }
  }
  return absl::OkStatus();
}

Graph WithoutUnused(const Graph& graph) {
  std::vector<bool> needed(graph.values.size(), false);
  for (const int value : graph.inputs) needed[value] = true;
  for (const int value : graph.outputs) needed[value] = true;
  std::vector<bool> kept(graph.nodes.size(), false);
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    for (const int output : graph.nodes[n].outputs) {
      if (needed[output]) kept[n] = true;
    }
    if (!kept[n]) continue;
    for (const int output : graph.nodes[n].outputs) needed[output] = true;
    for (const int input : graph.nodes[n].inputs) {
      if (input >= 0) needed[input] = true;
    }
  }
  Graph result;
  result.name = graph.name;
  std::vector<int> place(graph.values.size(), -1);
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (!needed[v]) continue;
    place[v] = static_cast<int>(result.values.size());
    result.values.push_back(graph.values[v]);
  }
  const auto move = [&](std::vector<int> values) {
    for (int& value : values) value = value < 0 ? value : place[value];
    return values;
  };
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!kept[n]) continue;
    Node node = graph.nodes[n];
    node.inputs = move(node.inputs);
    node.outputs = move(node.outputs);
    for (const int output : node.outputs) {
      result.values[output].producer = static_cast<int>(result.nodes.size());
    }
    result.nodes.push_back(std::move(node));
  }
  result.inputs = move(graph.inputs);
  result.outputs = move(graph.outputs);
  return result;
}

}  // namespace optrail::graph
