#ifndef OPTRAIL_SUITES_GRAPH_FEED_GRAPH_H_
#define OPTRAIL_SUITES_GRAPH_FEED_GRAPH_H_

// The command `optrail graph feed` without its flags: a model on a CPU whose
// input a loader brings meanwhile.
//
//   GraphFeedCommand command;
//   command.path = "dlrm.onnx";
//   command.input = "clicks.csv";
//   OPTRAIL_ASSIGN_OR_RETURN(const ExitCode code,
//                            FeedGraph(command, std::cout));

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/exit_code.h"
#include "base/table.h"
#include "graph/input/loader.h"
#include "graph/onnx/import.h"

namespace optrail::suites {

struct GraphFeedCommand {
  std::string path;
  graph::ImportOptions import;
  std::string input;  // graph/input/input_source.h
  graph::LoaderOptions loader;
  // Every read takes so much longer, as from remote storage.
  absl::Duration read_latency;
  int threads = 1;            // of the model
  std::string store;          // of tuned configs; "": those that are checked in
  std::string compile_cache;  // "": kernels are compiled each time
  // With `record`, the folder of the history that gets the run.
  bool record = false;
  std::string history;
  OutputFormat format = OutputFormat::kTable;
};

// Prints what a batch and a sample take and what holds the model back.
// kNotEnoughData where the machine was too busy to tell.
absl::StatusOr<ExitCode> FeedGraph(const GraphFeedCommand& command,
                                   std::ostream& out);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_FEED_GRAPH_H_
