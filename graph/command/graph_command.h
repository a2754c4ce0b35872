#ifndef OPTRAIL_GRAPH_COMMAND_GRAPH_COMMAND_H_
#define OPTRAIL_GRAPH_COMMAND_GRAPH_COMMAND_H_

// The commands `optrail graph show` and `optrail graph check` without their
// flags.
//
//   GraphShowCommand command;
//   command.path = "bert.onnx";
//   OPTRAIL_ASSIGN_OR_RETURN(const ExitCode code,
//                            RunGraphShow(command, std::cout));

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "base/exit_code.h"
#include "base/text/table.h"
#include "graph/onnx/import.h"

namespace optrail::graph {

enum class GraphView { kSummary, kText, kDot, kJson };

// For flags of that type: summary, text, dot, json.
bool AbslParseFlag(absl::string_view text, GraphView* view, std::string* error);
std::string AbslUnparseFlag(GraphView view);

struct GraphShowCommand {
  std::string path;  // an ONNX model
  ImportOptions import;
  GraphView view = GraphView::kSummary;
  OutputFormat format = OutputFormat::kTable;  // of the summary's tables
};

// kCheckFailed where a node of the model is not covered.
absl::StatusOr<ExitCode> RunGraphShow(const GraphShowCommand& command,
                                      std::ostream& out);

struct GraphCheckCommand {
  std::string path;
  // A .npz with the inputs by name, and the outputs by name or, where there is
  // one, as "output".
  std::string data;
  ImportOptions import;
  double tolerance = 1e-4;  // of the largest expected value
  OutputFormat format = OutputFormat::kTable;
};

// Computes the graph in double precision and compares: kCheckFailed where an
// output differs or a node is not covered.
absl::StatusOr<ExitCode> RunGraphCheck(const GraphCheckCommand& command,
                                       std::ostream& out);

// "batch=8,sequence=128" as ImportOptions::dims; InvalidArgument names the part
// that is wrong.
absl::StatusOr<std::map<std::string, int64_t>> ParseDims(
    absl::string_view text);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_COMMAND_GRAPH_COMMAND_H_
