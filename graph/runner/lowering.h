#ifndef OPTRAIL_GRAPH_RUNNER_LOWERING_H_
#define OPTRAIL_GRAPH_RUNNER_LOWERING_H_

// Lowering makes a program of a graph, node by node: what Lower() is made of.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const Program program,
//       Lowering(graph, kMostNodesInLoop, target).Run());
//
// Its functions are in lower.cc (storages and steps), loop_lowering.cc (views
// and generated loops) and operator_lowering.cc (our operators and windows).

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/runner/codegen.h"
#include "graph/runner/groups.h"
#include "graph/runner/program.h"

namespace optrail::graph {

class Lowering {
 public:
  Lowering(const Graph& graph, int most_nodes_in_loop,
           const LoweringTarget& target)
      : graph_(graph),
        target_(target),
        groups_(FindGroups(graph, most_nodes_in_loop)),
        consumers_(graph.Consumers()),
        views_(graph.values.size()) {}

  absl::StatusOr<Program> Run();

 private:
  View NewView(const TensorType& type, Storage::Kind kind, int value = -1,
               std::vector<int> order = {});

  const View& ViewOf(int value);

  bool IsPrepared(const View& view) const;

  // Completes a step whose last `results` operands are new storages.
  void Add(Step step, std::vector<int> nodes);

  // x in a storage of its own, in this order of dimensions.
  View Copied(const View& x, std::vector<int> order, int node, const char* why);

  // A copy unless its elements lie one behind the other and begin where an
  // operand may.
  View Dense(const View& x, int node);

  bool IsOperand(const View& x) const;

  bool IsChannelsLast(const View& x) const;

  View ChannelsLast(const View& x, int node);

  absl::Status LowerNode(int n);

  // Nothing else has it: in double precision, on values copied there and back.
  absl::Status Reference(int n, std::string why = "");

  absl::Status Move(int n);

  // Gives the view other dims where its strides allow; false where they don't.
  static bool Reshaped(const Dims& to, View& view);

  // Each input is copied to its part of the result.
  absl::Status Concat(int n);

  // Elementwise nodes, gathers and reductions, with the nodes that are inlined
  // into them.
  struct LoopBuilder {
    Expression expression;
    Step step;
    std::map<int, int> known;  // value -> number in the expression
    std::vector<int> nodes;
    std::optional<View> like;  // the first load that has all elements
  };

  int OperandOf(LoopBuilder& b, const View& view);

  static Dims StridesAlong(const View& view, const Dims& dims);

  int Read(LoopBuilder& b, int value, const Dims& dims);

  // The element of an elementwise node or a gather at the loops' place.
  int Compute(LoopBuilder& b, int n, const Dims& dims);

  int Gathered(LoopBuilder& b, const Node& node, const Dims& dims);

  absl::Status Pad(int n);

  absl::Status Loop(int n);

  // The node that rounds the result of a reduction, which then does so itself:
  // -1 if there is none or somebody else reads it.
  int CastBehind(int n) const;

  static void AddDim(optrail::proto::Shape& shape, const char* name,
                     int64_t value);

  // Returns the shape with the type of the operands.
  static optrail::proto::Shape Typed(optrail::proto::Shape shape,
                                     proto::ElementType type);

  // OK if one of our operators computes it here.
  absl::Status Computes(const std::string& kernel,
                        const optrail::proto::Shape& shape) const;

  absl::Status AddOperator(int n, const char* kernel,
                           std::vector<View> operands,
                           optrail::proto::Shape shape);

  // By loops, or by the reference where the printer has none. The operands end
  // with the result.
  absl::Status AddLoops(int n, GeneratedKernel code, std::vector<View> operands,
                        bool in_place, const absl::Status& why);

  absl::Status ProductByLoops(int n, const absl::Status& why);

  // In another type.
  View Converted(const View& x, proto::ElementType type, int n);

  absl::Status Product(int n);

  absl::Status ByMatrix(int n, const View& a, const View& b,
                        const TensorType& type);

  // A copy with zeros behind its columns where it has fewer.
  View WithColumns(const View& x, int64_t columns, int n);

  absl::Status Batched(int n, const View& a, View b, const TensorType& type);

  // k comes with its columns as rows.
  absl::Status Attention(int n);

  absl::Status Softmax(int n);

  absl::Status RowNorm(int n);

  absl::Status NormOfSum(int n);

  static bool IsImage(const View& x);

  WindowLoops LoopsOf(const Node& node, const View& x, const View& y,
                      const Dims& kernel) const;

  // Weights [k, c, r, s] as [r, s, c, k].
  View Filters(int value, int n);

  absl::Status Conv(int n);

  static optrail::proto::Shape ShapeOfConv(const WindowLoops& loops);

  absl::Status Pool(int n);

  const Graph& graph_;
  const LoweringTarget& target_;
  const Groups groups_;
  const std::vector<std::vector<int>> consumers_;  // by value
  std::set<int> done_;  // nodes that a step of another one computes
  std::vector<View> views_;
  Program program_;
};

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_RUNNER_LOWERING_H_
