#include "graph/ir/graph_text.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace optrail::graph {
namespace {

std::string Name(const std::string& name) { return absl::CEscape(name); }

std::string ValueText(const Graph& graph, int value) {
  if (value < 0) return "-";
  const Value& v = graph.values[value];
  return absl::StrCat(Name(v.name), " ", TypeText(v.type),
                      v.constant == nullptr  ? ""
                      : v.constant->absent() ? " (absent constant)"
                                             : " (constant)");
}

std::string AttributeText(const Attribute& attribute) {
  if (const auto* ints = std::get_if<Dims>(&attribute)) {
    return absl::StrCat("[", absl::StrJoin(*ints, ","), "]");
  }
  if (const auto* text = std::get_if<std::string>(&attribute)) {
    return Name(*text);
  }
  if (const auto* real = std::get_if<double>(&attribute)) {
    return absl::StrCat(*real);
  }
  return absl::StrCat(std::get<int64_t>(attribute));
}

std::string NodeText(const Graph& graph, const Node& node) {
  std::vector<std::string> outputs, inputs;
  for (const int output : node.outputs) {
    outputs.push_back(ValueText(graph, output));
  }
  for (const int input : node.inputs) {
    inputs.push_back(ValueText(graph, input));
  }
  const std::string attributes = AttributesText(node.attributes);
  return absl::StrCat(absl::StrJoin(outputs, ", "), " = ", node.op, "(",
                      absl::StrJoin(inputs, ", "), ")",
                      attributes.empty() ? "" : " ", attributes);
}

void FillAttributes(const Node& node, proto::GraphNode& out) {
  for (const auto& [name, attribute] : node.attributes) {
    proto::GraphAttribute& added = *out.add_attributes();
    added.set_name(absl::CEscape(name));
    if (const auto* ints = std::get_if<Dims>(&attribute)) {
      for (const int64_t value : *ints) {
        added.mutable_ints()->add_value(value);
      }
    } else if (const auto* text = std::get_if<std::string>(&attribute)) {
      added.set_text(Name(*text));
    } else if (const auto* real = std::get_if<double>(&attribute)) {
      added.set_real(*real);
    } else {
      added.set_int_(std::get<int64_t>(attribute));
    }
  }
}

}  // namespace

std::string AttributesText(const Attributes& attributes) {
  std::vector<std::string> parts;
  for (const auto& [name, attribute] : attributes) {
    parts.push_back(absl::StrCat(name, "=", AttributeText(attribute)));
  }
  return absl::StrJoin(parts, " ");
}

std::string GraphText(const Graph& graph) {
  std::string text = absl::StrCat("graph ", Name(graph.name), "\n");
  for (const int input : graph.inputs) {
    absl::StrAppend(&text, "input ", ValueText(graph, input), "\n");
  }
  for (const Node& node : graph.nodes) {
    absl::StrAppend(&text, NodeText(graph, node), "\n");
  }
  for (const int output : graph.outputs) {
    absl::StrAppend(&text, "output ", ValueText(graph, output), "\n");
  }
  return text;
}

std::string GraphDot(const Graph& graph) {
  const auto quote = [](const std::string& text) {
    return absl::StrCat("\"", absl::CEscape(text), "\"");
  };
  std::string text =
      absl::StrCat("digraph ", quote(graph.name), " {\n  node [shape=box];\n");
  for (const int input : graph.inputs) {
    absl::StrAppend(&text, "  v", input,
                    " [shape=ellipse label=", quote(ValueText(graph, input)),
                    "];\n");
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    absl::StrAppend(&text, "  n", n, " [label=", quote(node.op),
                    " tooltip=", quote(node.name), "];\n");
    for (const int input : node.inputs) {
      if (input < 0 || graph.is_constant(input)) continue;
      const int producer = graph.values[input].producer;
      absl::StrAppend(&text, producer < 0 ? "  v" : "  n",
                      producer < 0 ? input : producer, " -> n", n,
                      " [label=", quote(TypeText(graph.type(input))), "];\n");
    }
  }
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    const int output = graph.outputs[o];
    const int producer = graph.values[output].producer;
    absl::StrAppend(&text, "  o", o,
                    " [shape=ellipse label=", quote(ValueText(graph, output)),
                    "];\n");
    if (!graph.is_constant(output)) {
      absl::StrAppend(&text, producer < 0 ? "  v" : "  n",
                      producer < 0 ? output : producer, " -> o", o, ";\n");
    }
  }
  return absl::StrCat(text, "}\n");
}

proto::Graph GraphProto(const Graph& graph) {
  proto::Graph out;
  out.set_name(Name(graph.name));
  for (const Value& value : graph.values) {
    proto::GraphValue& added = *out.add_values();
    added.set_name(Name(value.name));
    added.set_type(value.type.type);
    for (const int64_t dim : value.type.dims) added.add_dims(dim);
    added.set_source(value.constant == nullptr ? proto::GraphValue::COMPUTED
                     : value.constant->absent()
                         ? proto::GraphValue::ABSENT_CONSTANT
                         : proto::GraphValue::CONSTANT);
  }
  for (const int input : graph.inputs) {
    out.add_inputs(input);
    out.mutable_values(input)->set_source(proto::GraphValue::INPUT);
  }
  for (const Node& node : graph.nodes) {
    proto::GraphNode& added = *out.add_nodes();
    added.set_name(Name(node.name));
    added.set_op(node.op);
    for (const int input : node.inputs) added.add_inputs(input);
    for (const int output : node.outputs) added.add_outputs(output);
    FillAttributes(node, added);
  }
  for (const int output : graph.outputs) out.add_outputs(output);
  return out;
}

}  // namespace optrail::graph
