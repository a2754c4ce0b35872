#ifndef OPTRAIL_GRAPH_IR_GRAPH_H_
#define OPTRAIL_GRAPH_IR_GRAPH_H_

// Graph says which operators compute which values from which: what models are
// imported into, what fusion rewrites, and what a runner executes.
//
//   Graph graph;
//   const int x = graph.AddInput("x", {proto::ELEMENT_F32, {2, 3}});
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const int y, graph.AddNode("y", "relu", {x}));
//   graph.outputs = {y};
//   OPTRAIL_RETURN_IF_ERROR(Validate(graph));
//
// Every value has a type and static dimensions; ops.h has the operators. Nodes
// stand after those whose results they read. A Graph owns its constants; copies
// share them. It is not thread-safe, a const one is.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/array.h"

namespace optrail::graph {

using Attribute = std::variant<int64_t, double, std::string, Dims>;
using Attributes = std::map<std::string, Attribute, std::less<>>;

// The value of a constant: bytes of dense elements in the machine's order, or a
// filler where a model came without them.
struct Constant {
  std::shared_ptr<const std::string> bytes;  // nullptr: filled from the seed
  // Uniform values with mean 0 and this deviation; integers are all 0.
  uint64_t seed = 0;
  double deviation = 0;

  bool absent() const { return bytes == nullptr; }
};

// All of its elements. The filler of a seed is the same everywhere.
std::string ConstantBytes(const TensorType& type, const Constant& constant);
Array ConstantArray(const TensorType& type, const Constant& constant);

struct Value {
  std::string name;
  TensorType type;
  int producer = -1;  // the node that computes it
  std::shared_ptr<const Constant> constant;
};

struct Node {
  std::string name;
  std::string op;
  std::vector<int> inputs;  // values; -1: left out
  std::vector<int> outputs;
  Attributes attributes;

  int64_t Int(absl::string_view attribute, int64_t otherwise = 0) const;
  double Real(absl::string_view attribute, double otherwise = 0) const;
  std::string Text(absl::string_view attribute) const;
  Dims Ints(absl::string_view attribute) const;  // empty if there is none
};

struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<int> inputs;
  std::vector<int> outputs;

  int AddInput(std::string name, TensorType type);
  int AddConstant(std::string name, const Array& array);
  int AddConstant(std::string name, TensorType type, Constant constant);

  // Adds a node and a value for each of its results, whose types follow from
  // the inputs. Returns the first result; others follow it. InvalidArgument
  // says what the operator does not accept. The values are called `name`, the
  // second and later ones with ":1", ":2" behind it.
  absl::StatusOr<int> AddNode(std::string name, std::string op,
                              std::vector<int> inputs,
                              Attributes attributes = {});

  const TensorType& type(int value) const { return values[value].type; }
  bool is_constant(int value) const {
    return values[value].constant != nullptr;
  }
  // Nodes that read each value; the graph's own outputs are not among them.
  std::vector<std::vector<int>> Consumers() const;
};

// InvalidArgument that names the node or value: an index out of range, a value
// that is read before it is computed or computed twice, a type that does not
// follow from the node's inputs.
absl::Status Validate(const Graph& graph);

// Without nodes and values that no output needs; inputs stay. Indices change.
Graph WithoutUnused(const Graph& graph);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_IR_GRAPH_H_
