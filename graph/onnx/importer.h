#ifndef OPTRAIL_GRAPH_ONNX_IMPORTER_H_
#define OPTRAIL_GRAPH_ONNX_IMPORTER_H_

// Importer makes a graph of an ONNX model, node by node: what ImportOnnxModel
// (graph/onnx/import.h) calls. Branches and loops are in loop_import.cc, lists
// of tensors in sequence_import.cc.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/graph.h"
#include "graph/onnx/import.h"
#include "graph/onnx/onnx_model.h"

namespace optrail::graph {

// A name stands for this while a graph is imported.
struct Named {
  int value = -1;
  std::string blocked;  // why there is no value
  // A sequence's tensors, of which there is no single value.
  std::shared_ptr<const std::vector<int>> sequence = nullptr;
};

// The names of a graph, in front of those of the graph around it, which must
// outlive it. Nothing is copied: a model may have 10^5 branches.
class Scope {
 public:
  Scope() = default;
  explicit Scope(const Scope* outer) : outer_(outer) {}

  // nullptr where nothing has the name.
  const Named* Find(absl::string_view name) const {
    const auto found = names_.find(name);
    if (found != names_.end()) return &found->second;
    return outer_ == nullptr ? nullptr : outer_->Find(name);
  }
  // The name then means this in the graph, whatever it means around it.
  void Set(const std::string& name, Named named) {
    names_[name] = std::move(named);
  }

 private:
  const Scope* outer_ = nullptr;
  std::map<std::string, Named, std::less<>> names_;
};

inline constexpr const char* kSequenceOperators[] = {
    "ConcatFromSequence", "SequenceAt",     "SequenceConstruct",
    "SequenceEmpty",      "SequenceErase",  "SequenceInsert",
    "SequenceLength",     "SplitToSequence"};

class Importer {
 public:
  Importer(const OnnxModel& model, const ImportOptions& options)
      : model_(model), options_(options) {}

  absl::StatusOr<Imported> Run();

 private:
  void Note(std::string note);
  void Block(Scope& scope, const OnnxNode& node, const std::string& why);
  absl::Status AddConstants(const OnnxGraph& graph, Scope& scope);

  // InvalidArgument names a dimension that no input has.
  absl::Status CheckDimsAreOfInputs() const;

  // Dimensions without a size get one.
  absl::StatusOr<TensorType> Bound(const OnnxValue& value);
  // Returns whether its first dimension is the batch, as that of the first
  // input is.
  bool HasBatch(const OnnxValue& value);
  absl::Status AddInputs();
  absl::Status AddNodes(const OnnxGraph& graph, Scope& scope, int depth);
  absl::Status AddNode(const OnnxNode& node, Scope& scope, int depth);
  absl::Status AddByRule(const OnnxNode& node, std::vector<int> operands,
                         Scope& scope);
  absl::Status Bind(const OnnxNode& node, const std::vector<int>& results,
                    size_t first_node, Scope& scope);

  // The results become inputs where the model says what they are.
  void NotCovered(const OnnxNode& node, Scope& scope,
                  const std::string& reason);

  // A condition that is known chooses a branch when the model is imported.
  absl::Status AddBranch(const OnnxNode& node, const std::vector<int>& operands,
                         Scope& scope, int depth);

  // A graph that a loop runs again and again, whose nodes are added anew for
  // each iteration: how often must be known.
  struct Body {
    const OnnxGraph* graph = nullptr;
    Scope scope;
    int depth = 0;
    std::vector<std::vector<int>> stacked;  // results of each iteration
  };

  absl::StatusOr<Body> BodyOf(const OnnxNode& node, const Scope& scope,
                              size_t inputs, size_t least_outputs, int depth);

  // The outputs of one iteration; -1 for one that is blocked.
  absl::StatusOr<std::vector<int>> Iterate(const OnnxNode& node, Body& body,
                                           const std::vector<int>& inputs,
                                           int64_t iteration);

  static bool HasBlocked(const std::vector<int>& values);

  // The last states, then the results of all iterations side by side.
  absl::Status BindLoop(const OnnxNode& node, const Body& body,
                        std::vector<int> results, const Dims& axes,
                        const Dims& directions, Scope& scope);
  absl::Status AddLoop(const OnnxNode& node, const std::vector<int>& operands,
                       Scope& scope, int depth);
  absl::Status AddScan(const OnnxNode& node, const std::vector<int>& operands,
                       Scope& scope, int depth);

  // Sequences are lists of values, known as long as they are when the model is
  // imported: nothing of them is left in the graph.
  static bool IsOfSequences(const OnnxNode& node);
  absl::Status AddSequenceNode(const OnnxNode& node,
                               const std::vector<int>& operands, Scope& scope);
  // The sequence that operand i of the node is, or nullptr.
  static const std::vector<int>* SequenceOf(const OnnxNode& node, size_t i,
                                            const Scope& scope);
  absl::Status AddOutputs();

  // The value by the name of an output. A value that is a constant, an input or
  // another output has a name already, and gets a copy.
  absl::StatusOr<int> Called(const std::string& name, int value);

  // Fails where the model declares another output than comes out.
  absl::Status CheckOutput(const OnnxValue& output, int value);
  void CountAbsent();

  const OnnxModel& model_;
  const ImportOptions& options_;
  Graph graph_;
  Scope scope_;
  std::map<absl::string_view, const OnnxValue*> declared_;
  Imported result_;
  const OnnxValue* batch_of_ = nullptr;  // the input whose batch it is
  // Elements that a model may still have computed from its constants.
  int64_t work_ = int64_t{1} << 28;
  int64_t blocked_nodes_ = 0;
  std::string iteration_;  // of the loops around, "[3]"
};

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_ONNX_IMPORTER_H_
