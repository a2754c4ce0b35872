#ifndef OPTRAIL_GRAPH_IR_OPS_H_
#define OPTRAIL_GRAPH_IR_OPS_H_

// The operators that a graph may have: for each, what its results look like and
// what they are, in double precision. docs/method/graphs.md lists them.
//
//   const OpSpec* relu = FindOp("relu");
//   OPTRAIL_ASSIGN_OR_RETURN(std::vector<TensorType> types,
//                            relu->infer(node, {&x_type}));
//   OPTRAIL_ASSIGN_OR_RETURN(std::vector<Array> y,
//                            relu->evaluate(node, {&x}, types));
//
// Operators are few on purpose: an importer expresses what a format has in
// terms of them (a gated activation is several elementwise nodes), so that
// references, code generation and fusion stay small.

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/array.h"
#include "graph/ir/graph.h"

namespace optrail::graph {

// nullptr stands for an operand that is left out.
using TypeList = std::vector<const TensorType*>;
using ArrayList = std::vector<const Array*>;

// The types of a node's results are inferred first, their values computed.
using Types = absl::StatusOr<std::vector<TensorType>>;
using Arrays = absl::StatusOr<std::vector<Array>>;

enum class OpKind {
  kElementwise,  // element by element, inputs broadcast
  kMovement,     // results are copies of elements of the inputs
  kReduction,
  kContraction,
  kOther,
};

struct OpSpec {
  std::string name;
  OpKind kind = OpKind::kOther;
  int min_inputs = 1;
  int max_inputs = 1;
  // Inputs below min_inputs are there, the others may be nullptr.
  std::function<Types(const Node&, const TypeList&)> infer;
  // `types` are what infer() returned. An error is of values (an index out of
  // range): OutOfRange.
  std::function<Arrays(const Node&, const ArrayList&,
                       const std::vector<TensorType>& types)>
      evaluate;
};

// nullptr if there is none.
const OpSpec* FindOp(absl::string_view name);

// Returns true if the results of `node` are the elements of its input in
// another layout, which the runner need not copy.
bool IsView(const Node& node);

// The types of a node's results, with everything checked: the operator, the
// number of inputs, sizes of results.
Types InferTypes(const Node& node, const TypeList& inputs);

// InvalidArgument for a negative dimension or more than kMostElements elements.
absl::Status CheckDims(const Dims& dims);

// The number of elements of dimensions `begin` to `end`.
int64_t Product(const Dims& dims, size_t begin, size_t end);

// InvalidArgument where the attribute "axis" is no dimension of `type`.
absl::Status CheckAxis(const Node& node, const TensorType& type);

// Each family in a file of its own.
std::vector<OpSpec> ElementwiseOps();
std::vector<OpSpec> MovementOps();
std::vector<OpSpec> IndexingOps();
std::vector<OpSpec> ReductionOps();
std::vector<OpSpec> ContractionOps();
std::vector<OpSpec> WindowOps();
std::vector<OpSpec> NormOps();
std::vector<OpSpec> FusedOps();

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_IR_OPS_H_
