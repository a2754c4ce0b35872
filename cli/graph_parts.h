#ifndef OPTRAIL_CLI_GRAPH_PARTS_H_
#define OPTRAIL_CLI_GRAPH_PARTS_H_

// The parts of `optrail graph` that answer requests (graph_serve.cc), and what
// they share with the others (graph.cc): values of flags, checked.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "suites/graph/run_graph.h"

namespace optrail::cli {

absl::StatusOr<graph::ImportOptions> GraphImport();
// The threads of a model.
absl::StatusOr<int> GraphThreads();
absl::StatusOr<int64_t> GraphBatch();
// The folders of compiled kernels and of decisions of measured fusion, both
// beside the store.
std::string GraphCompiledFolder();
std::string GraphFusionFolder(const std::string& store);
// The model and how it is run.
absl::StatusOr<suites::GraphRunCommand> HowToRunGraph(const std::string& path);

// `paths` has the model.
absl::StatusOr<int> RunGraphServe(const std::vector<std::string>& paths);
absl::StatusOr<int> RunGraphTune(const std::vector<std::string>& paths);

}  // namespace optrail::cli

#endif  // OPTRAIL_CLI_GRAPH_PARTS_H_
