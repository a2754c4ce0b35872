#ifndef OPTRAIL_GRAPH_RUNNER_PROGRAM_H_
#define OPTRAIL_GRAPH_RUNNER_PROGRAM_H_

// A Program is a graph in the form in which a machine runs it: storages, and
// steps that read and write views of them.
//
//   const Program program = *Lower(graph, LoweringTarget());
//   for (const Step& step : program.steps) Use(step.name, step.kernel);
//
// Transposes, slices, expansions and most reshapes are views and no steps.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "graph/runner/codegen.h"
#include "tuning/proto/config.pb.h"

namespace optrail::graph {

// A tensor in a storage: strides and offset are in elements, a stride is 0
// where elements repeat.
struct View {
  int storage = -1;
  int64_t offset = 0;
  TensorType type;
  Dims strides;
};

// True if its elements lie one behind the other in row-major order.
bool IsDense(const View& view);
// True if our kernels may have it: f32 or bf16.
bool IsFloat(const View& view);
// The order of dimensions, outermost first, in which memory holds it.
std::vector<int> MemoryOrder(const View& view);

struct Storage {
  enum class Kind {
    kArena,     // live from its first step to its last
    kInput,     // the caller's
    kConstant,  // values of the graph
    kPrepared,  // computed once from constants
  };
  Kind kind = Kind::kArena;
  int64_t bytes = 0;
  int value = -1;  // of an input or a constant; -1 there: zeros
};

struct Step {
  std::string name;    // of its last node
  std::string kernel;  // an operator of ops/, "generated" or "reference"
  // The last `results` of them are written.
  std::vector<View> operands;
  int results = 1;
  GeneratedKernel code;  // of a generated one
  // For an operator's: what it is called with.
  optrail::proto::Shape shape;
  // For the reference: a node of the graph.
  int node = -1;
  // Whether it runs once, before the calls.
  bool prepared = false;
  // Whether its weights are computed, so that each call packs them.
  bool packs = false;
  // True if each element of a result may replace the element of an operand at
  // the same place: all reads of that come before.
  bool in_place = false;
  std::vector<int> nodes;  // all nodes that it computes
  // Why no operator of ours computes it, where one of that kind exists, or why
  // the reference does, where it is not for want of a kernel.
  std::string why;
};

struct Program {
  std::vector<Storage> storages;
  std::vector<Step> steps;
  std::vector<View> inputs;   // of the graph
  std::vector<View> outputs;  // likewise
  // Why elementwise nodes stand in steps of their own, by node.
  std::vector<std::pair<int, std::string>> not_joined;
};

// The device for which a graph is lowered.
struct LoweringTarget {
  const LoopPrinter* printer = &CppPrinter();
  // OK if one of our operators computes the shape there; none: those in f32 do.
  std::function<absl::Status(const std::string& op,
                             const optrail::proto::Shape& shape)>
      computes = nullptr;
  // Operands of our operators and of rows begin at multiples of it.
  int64_t operand_bytes = 1;
};

// InvalidArgument or Unimplemented names the node. The graph is valid.
absl::StatusOr<Program> Lower(const Graph& graph,
                              const LoweringTarget& target = {});

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_RUNNER_PROGRAM_H_
