#include "graph/command/export_command.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/file/writable_folder.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "graph/onnx/filled_model.h"
#include "graph/reference/reference.h"

namespace optrail::graph {
namespace {

nlohmann::json Described(const Graph& graph, int value) {
  const TensorType& type = graph.type(value);
  return {{"name", graph.values[value].name},
          {"type", ElementTypeName(type.type)},
          {"dims", type.dims}};
}

}  // namespace

absl::Status RunGraphExport(const GraphExportCommand& command,
                            std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const Imported imported,
                           ImportOnnx(command.path, command.import));
  if (!imported.uncovered.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        command.path, ": ", imported.uncovered.size(),
        " nodes are not covered; next: optrail graph show ", command.path));
  }
  const Graph& graph = imported.graph;
  OPTRAIL_RETURN_IF_ERROR(CreateOutputFolder(command.folder));
  OPTRAIL_RETURN_IF_ERROR(
      WriteFilledModel(command.path, command.import.seed, command.folder));
  nlohmann::json model = {{"model", "model.onnx"},
                          {"inputs", nlohmann::json::array()},
                          {"outputs", nlohmann::json::array()}};
  const std::vector<Array> inputs = SeededInputs(graph, command.import.seed);
  for (size_t i = 0; i < inputs.size(); ++i) {
    nlohmann::json input = Described(graph, graph.inputs[i]);
    const std::string file = absl::StrCat("input_", i, ".bin");
    input["file"] = file;
    model["inputs"].push_back(std::move(input));
    OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(command.folder, file),
                                                inputs[i].Encode()));
  }
  for (const int output : graph.outputs) {
    model["outputs"].push_back(Described(graph, output));
  }
  OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(
      JoinPath(command.folder, "model.json"), model.dump(2) + "\n"));
  out << "wrote " << JoinPath(command.folder, "model.onnx") << ", "
      << inputs.size() << (inputs.size() == 1 ? " input" : " inputs")
      << " and model.json\n";
  return absl::OkStatus();
}

}  // namespace optrail::graph
