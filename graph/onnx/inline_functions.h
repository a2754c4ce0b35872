#ifndef OPTRAIL_GRAPH_ONNX_INLINE_FUNCTIONS_H_
#define OPTRAIL_GRAPH_ONNX_INLINE_FUNCTIONS_H_

// InlineFunctions puts the nodes of a model's own functions in the place of the
// nodes that call them. PyTorch's newer exporter writes a function for each
// module and for each of its operators.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/onnx/onnx_model.h"

namespace optrail::graph {

struct OnnxFunction {
  std::string name;
  std::string domain;
  std::string overload;  // tells functions of one name apart, as in a call
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<OnnxNode> nodes;
  // Attributes that a call may leave out, and their values then.
  std::map<std::string, OnnxAttribute, std::less<>> defaults;
  int64_t opset = 0;  // of ONNX's own operators; 0: the model's
};

// A node that was "f" of a call "c" is "c/f" then, and so are its results,
// unless the call names them or the model has such a name: then "c/f_2".
// Names of a function, and of graphs inside of it, hide none of the caller's.
// InvalidArgument names the call: too many inputs or outputs, a value that the
// function reads and nothing of it computes, calls that are more than 64 deep
// with the graphs between them. All calls together may become a million nodes,
// calls inside and those without nodes counted as well, and 256 MiB of names
// and attributes. Two functions of the same name, domain and overload are an
// error, called or not.
absl::Status InlineFunctions(const std::vector<OnnxFunction>& functions,
                             OnnxGraph& graph);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_ONNX_INLINE_FUNCTIONS_H_
