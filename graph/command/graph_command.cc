#include "graph/command/graph_command.h"

#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/text/closest.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "google/protobuf/util/json_util.h"
#include "graph/ir/graph_text.h"
#include "graph/reference/npz.h"
#include "graph/reference/reference.h"

namespace optrail::graph {
namespace {

const std::map<std::string, GraphView>& Views() {
  static const auto* const views =
      new std::map<std::string, GraphView>{{"summary", GraphView::kSummary},
                                           {"text", GraphView::kText},
                                           {"dot", GraphView::kDot},
                                           {"json", GraphView::kJson}};
  return *views;
}

std::string Operators(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Node& node : graph.nodes) ++counts[node.op];
  std::vector<std::string> parts;
  for (const auto& [op, count] : counts) {
    parts.push_back(absl::StrCat(count, " ", op));
  }
  return absl::StrJoin(parts, ", ");
}

Table ValuesTable(const Graph& graph) {
  Table table(
      {{"role"}, {"name", Align::kLeft, "name", Clip::kNever}, {"type"}});
  for (const int input : graph.inputs) {
    table.AddRow({"input", absl::CEscape(graph.values[input].name),
                  TypeText(graph.type(input))});
  }
  for (const int output : graph.outputs) {
    table.AddRow({"output", absl::CEscape(graph.values[output].name),
                  TypeText(graph.type(output))});
  }
  return table;
}

Table UncoveredTable(const Imported& imported) {
  Table table({{"node", Align::kLeft, "node", Clip::kNever},
               {"operator"},
               {"reason", Align::kLeft, "reason", Clip::kNever}});
  for (const Uncovered& node : imported.uncovered) {
    table.AddRow({absl::CEscape(node.node), absl::CEscape(node.op),
                  absl::CEscape(node.reason)});
  }
  return table;
}

void PrintSummary(const GraphShowCommand& command, const Imported& imported,
                  std::ostream& out) {
  const Graph& graph = imported.graph;
  if (command.format != OutputFormat::kTable) {
    out << (imported.uncovered.empty() ? ValuesTable(graph)
                                       : UncoveredTable(imported))
               .Format(command.format, 0);
    return;
  }
  out << command.path << ": " << imported.onnx_nodes << " ONNX nodes, "
      << graph.nodes.size() << " nodes here\n"
      << Operators(graph) << "\n";
  if (imported.absent_constants > 0) {
    out << imported.absent_constants << " constants ("
        << FormatBytes(static_cast<double>(imported.absent_bytes))
        << ") did not come with the model: a seeded filler stands in\n";
  }
  for (const std::string& note : imported.notes) {
    out << "note: " << EscapeForTerminal(note) << "\n";
  }
  out << ValuesTable(graph).ToText(TerminalWidth());
  if (imported.uncovered.empty()) {
    out << "everything is covered\n";
  } else {
    out << imported.uncovered.size() << " nodes are not covered:\n"
        << UncoveredTable(imported).ToText(TerminalWidth());
  }
}

absl::StatusOr<std::string> Json(const Graph& graph) {
  std::string json;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  const auto status = google::protobuf::util::MessageToJsonString(
      GraphProto(graph), &json, options);
  if (!status.ok()) return absl::InternalError(status.ToString());
  return json;
}

absl::StatusOr<const Array*> Find(const NamedArrays& arrays,
                                  const std::string& name,
                                  const std::string& otherwise) {
  auto found = arrays.find(name);
  if (found == arrays.end()) found = arrays.find(otherwise);
  if (found != arrays.end()) return &found->second;
  std::vector<std::string> names;
  for (const auto& [known, array] : arrays) names.push_back(known);
  return absl::InvalidArgumentError(
      absl::StrCat("has no array \"", absl::CEscape(name), "\", only ",
                   absl::StrJoin(names, ", ")));
}

absl::StatusOr<ExitCode> Compared(const GraphCheckCommand& command,
                                  const Imported& imported,
                                  const NamedArrays& arrays,
                                  std::ostream& out) {
  const Graph& graph = imported.graph;
  std::vector<Array> inputs;
  for (const int input : graph.inputs) {
    OPTRAIL_ASSIGN_OR_RETURN(const Array* array,
                             Find(arrays, graph.values[input].name, ""));
    inputs.push_back(*array);
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Array> outputs,
                           RunReference(graph, inputs));
  Table table({{"output"},
               {"type"},
               {"difference", Align::kRight, "relative_difference"},
               {"verdict"},
               {"problem", Align::kLeft, "problem", Clip::kNever}});
  bool all = imported.uncovered.empty();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = graph.values[graph.outputs[i]].name;
    OPTRAIL_ASSIGN_OR_RETURN(
        const Array* expected,
        Find(arrays, name, graph.outputs.size() == 1 ? "output" : ""));
    const Difference difference = Compare(outputs[i], *expected);
    const bool same =
        difference.problem.empty() && difference.relative <= command.tolerance;
    all = all && same;
    table.AddRow({absl::CEscape(name), TypeText(outputs[i].type),
                  Cell::Number(difference.relative,
                               absl::StrFormat("%.2g", difference.relative)),
                  same ? "same" : "differs", difference.problem});
  }
  out << table.Format(command.format, TerminalWidth());
  return all ? ExitCode::kOk : ExitCode::kCheckFailed;
}

}  // namespace

bool AbslParseFlag(absl::string_view text, GraphView* view,
                   std::string* error) {
  const auto found = Views().find(std::string(text));
  if (found == Views().end()) {
    *error = ExpectedOneOf(text, {"summary", "text", "dot", "json"});
    return false;
  }
  *view = found->second;
  return true;
}

std::string AbslUnparseFlag(GraphView view) {
  for (const auto& [name, known] : Views()) {
    if (known == view) return name;
  }
  return "";
}

absl::StatusOr<ExitCode> RunGraphShow(const GraphShowCommand& command,
                                      std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const Imported imported,
                           ImportOnnx(command.path, command.import));
  if (command.view == GraphView::kSummary) {
    PrintSummary(command, imported, out);
  } else if (command.view == GraphView::kText) {
    out << GraphText(imported.graph);
  } else if (command.view == GraphView::kDot) {
    out << GraphDot(imported.graph);
  } else {
    OPTRAIL_ASSIGN_OR_RETURN(const std::string json, Json(imported.graph));
    out << json << "\n";
  }
  return imported.uncovered.empty() ? ExitCode::kOk : ExitCode::kCheckFailed;
}

absl::StatusOr<ExitCode> RunGraphCheck(const GraphCheckCommand& command,
                                       std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const Imported imported,
                           ImportOnnx(command.path, command.import));
  OPTRAIL_ASSIGN_OR_RETURN(const NamedArrays arrays, ReadNpz(command.data));
  absl::StatusOr<ExitCode> code = Compared(command, imported, arrays, out);
  if (code.ok()) return code;
  return absl::Status(
      code.status().code(),
      absl::StrCat(command.data, ": ", code.status().message()));
}

absl::StatusOr<std::map<std::string, int64_t>> ParseDims(
    absl::string_view text) {
  std::map<std::string, int64_t> dims;
  for (const absl::string_view part :
       absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::vector<std::string> sides = absl::StrSplit(part, '=');
    int64_t size = 0;
    if (sides.size() != 2 || sides[0].empty() ||
        !absl::SimpleAtoi(sides[1], &size) || size < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", absl::CEscape(part),
                       "\": expected NAME=SIZE, with a size of at least 0"));
    }
    dims[sides[0]] = size;
  }
  return dims;
}

}  // namespace optrail::graph
