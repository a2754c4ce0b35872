#ifndef OPTRAIL_GRAPH_ONNX_IMPORT_H_
#define OPTRAIL_GRAPH_ONNX_IMPORT_H_

// ImportOnnx makes a graph of Optrail's operators of an ONNX model.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const Imported imported,
//                            ImportOnnx("bert.onnx"));
//   for (const Uncovered& node : imported.uncovered) Use(node.reason);
//   OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Array> outputs,
//                            RunReference(imported.graph, inputs));
//
// Shapes are static: symbolic dimensions are bound by name. What is computed
// from constants alone is a constant afterwards. An ONNX operator without a
// counterpart becomes several nodes, called NAME/1, NAME/2 and so on.
//
// A node that cannot be imported does not fail the import. Where the model says
// what its results are, they become inputs of the graph; what else needs them
// is left out, and an output that needs them is missing. docs/method/graphs.md
// lists the operators that are claimed, with what of them is not.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "graph/onnx/onnx_model.h"

namespace optrail::graph {

struct ImportOptions {
  // Sizes of symbolic dimensions; those that are not here are 1, with a note.
  std::map<std::string, int64_t> dims;
  // Replaces the first dimension of the first input, and of the inputs whose
  // first dimension is the same, whatever the model says; 0: the model's.
  int64_t batch = 0;
  // Inputs that are constants: what decides about shapes must be.
  std::map<std::string, Array> known_inputs;
  uint64_t seed = 1;  // of absent constants
};

struct Uncovered {
  std::string node;
  std::string op;
  std::string reason;
};

struct Imported {
  Graph graph;
  std::vector<Uncovered> uncovered;
  std::vector<std::string> notes;
  int onnx_nodes = 0;
  int absent_constants = 0;
  int64_t absent_bytes = 0;
};

// InvalidArgument names the file and the node or value that is wrong.
absl::StatusOr<Imported> ImportOnnx(const std::string& path,
                                    const ImportOptions& options = {});
absl::StatusOr<Imported> ImportOnnxModel(const OnnxModel& model,
                                         const ImportOptions& options = {});

// FailedPrecondition names the first node that is not covered, and what to do
// next: a graph that lacks some is not what `path` says it is.
absl::Status CheckCovered(const Imported& imported, const std::string& path);

// The values of a constant that did not come with its model: initializer
// `place`, from 0, of the graph. Their deviation keeps the size of what they
// are multiplied with, from layer to layer.
Constant FillerOf(const TensorType& type, uint64_t seed, uint64_t place);

// Operators of ONNX that ImportOnnx has a rule for, sorted.
std::vector<std::string> ImportedOperators();

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_ONNX_IMPORT_H_
