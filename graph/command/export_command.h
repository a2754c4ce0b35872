#ifndef OPTRAIL_GRAPH_COMMAND_EXPORT_COMMAND_H_
#define OPTRAIL_GRAPH_COMMAND_EXPORT_COMMAND_H_

// The command `optrail graph export` without its flags: a model with all of its
// weights, and inputs for it, for other programs to compute the same with.
//
//   GraphExportCommand command;
//   command.path = "bert_large.onnx";
//   command.folder = "/tmp/bert_large";
//   OPTRAIL_RETURN_IF_ERROR(RunGraphExport(command, std::cout));
//
// The folder gets model.onnx, weights.bin where the model's values lie outside
// of it, an input_N.bin for each input (dense, little-endian), and model.json:
//
//   {"model": "model.onnx",
//    "inputs": [{"name": "x", "type": "f32", "dims": [1, 3, 224, 224],
//                "file": "input_0.bin"}],
//    "outputs": [{"name": "y", "type": "f32", "dims": [1, 1000]}]}

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "graph/onnx/import.h"

namespace optrail::graph {

struct GraphExportCommand {
  std::string path;
  ImportOptions import;  // its seed is that of weights and inputs
  std::string folder;    // made if it is not there
};

// FailedPrecondition for a model of which the import does not cover all.
absl::Status RunGraphExport(const GraphExportCommand& command,
                            std::ostream& out);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_COMMAND_EXPORT_COMMAND_H_
