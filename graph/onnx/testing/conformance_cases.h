#ifndef OPTRAIL_GRAPH_ONNX_TESTING_CONFORMANCE_CASES_H_
#define OPTRAIL_GRAPH_ONNX_TESTING_CONFORMANCE_CASES_H_

// ONNX's own cases, from Debian's libonnx-testdata, for tests: those all of
// whose operators the import claims.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const ConformanceCases cases,
//                            FindConformanceCases());
//   for (const std::string& folder : cases.claimed) {
//     absl::StatusOr<ConformanceCase> one = LoadConformanceCase(folder);
//   }

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/ir/array.h"
#include "graph/ir/graph.h"

namespace optrail::graph {

struct ConformanceCases {
  std::vector<std::string> claimed;  // folders, sorted
  // Folders of claimed operators that are not claimed, with the reason.
  std::vector<std::pair<std::string, std::string>> exempt;
  int not_claimed = 0;  // of other operators
};

inline constexpr char kConformanceFolder[] = "/usr/share/libonnx-testdata/data";

// NotFound, with what to install, where the folder is not there.
absl::StatusOr<ConformanceCases> FindConformanceCases(
    const std::string& folder = kConformanceFolder);

struct ConformanceCase {
  Graph graph;
  std::vector<Array> inputs;  // of the graph
  std::vector<Array> expected;
};

// Imports it with as few inputs known as it takes. Unimplemented where
// something of it is not covered.
absl::StatusOr<ConformanceCase> LoadConformanceCase(const std::string& folder);

// Why these are not the expected outputs; "" if they are, within ONNX's own
// runner's tolerance: 1e-3 relative, 1e-7 absolute.
std::string Mismatch(const std::vector<Array>& ours,
                     const std::vector<Array>& expected);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_ONNX_TESTING_CONFORMANCE_CASES_H_
