#ifndef OPTRAIL_GRAPH_ONNX_ONNX_MODEL_H_
#define OPTRAIL_GRAPH_ONNX_ONNX_MODEL_H_

// ReadOnnxModel reads an ONNX file as it is written, before anything is made of
// it: nodes with their attributes, constants, declared inputs and outputs.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const OnnxModel model,
//                            ReadOnnxModel("bert.onnx"));
//   for (const OnnxNode& node : model.graph.nodes) Use(node.op);
//
// The format is onnx.proto of ONNX 1.12 (https://github.com/onnx/onnx). Values
// that a file keeps outside are read from the model's folder and nowhere else.
// Those whose file is not there are absent: constants without bytes. The
// model's own functions stand where they are called (inline_functions.h).

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/graph.h"

namespace optrail::graph {

struct OnnxTensor {
  std::string name;
  TensorType type;
  Constant constant;
  std::string problem;  // why it cannot be used, e.g. a type of text
};

struct OnnxGraph;

struct OnnxAttribute {
  int64_t integer = 0;
  double real = 0;
  std::string text;
  Dims integers;
  std::vector<double> reals;
  std::vector<std::string> texts;
  std::shared_ptr<const OnnxTensor> tensor;
  std::shared_ptr<const OnnxGraph> graph;
  // Inside of a function: the attribute of its call that stands here.
  std::string reference;
};

struct OnnxNode {
  std::string name;  // as in the file, or made of operator and position
  std::string op;
  std::string domain;  // "" for ONNX's own
  // In a call it tells which of the functions of one name is meant.
  std::string overload;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::map<std::string, OnnxAttribute, std::less<>> attributes;
  int64_t opset = 0;  // of the function that it is from; 0: the model's
};

struct OnnxValue {
  std::string name;
  TensorType type;  // unspecified where the file does not say
  // For each dimension its symbol, or "". Dims that are unknown are -1.
  std::vector<std::string> symbols;
  bool has_shape = false;
  std::string problem;  // why it is no tensor that a graph can have
};

struct OnnxGraph {
  std::string name;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  std::vector<OnnxValue> inputs;
  std::vector<OnnxValue> outputs;
  std::vector<OnnxValue> values;  // what the file says of other values
};

struct OnnxModel {
  OnnxGraph graph;
  int64_t opset = 0;  // of ONNX's own operators
};

// InvalidArgument names the file and what is wrong: no ONNX, a tensor whose
// bytes do not fit its dimensions, a path outside the model's folder.
absl::StatusOr<OnnxModel> ReadOnnxModel(const std::string& path);

// The same for the contents of a file; `folder` is where values outside are,
// "" for nowhere.
absl::StatusOr<OnnxModel> ParseOnnxModel(absl::string_view contents,
                                         const std::string& folder);

// A file that holds one tensor (TensorProto), as conformance cases do.
absl::StatusOr<OnnxTensor> ReadOnnxTensor(const std::string& path);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_ONNX_ONNX_MODEL_H_
