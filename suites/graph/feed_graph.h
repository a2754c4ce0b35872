#ifndef OPTRAIL_SUITES_GRAPH_FEED_GRAPH_H_
#define OPTRAIL_SUITES_GRAPH_FEED_GRAPH_H_

// The command `optrail graph feed` without its flags: a model whose input a
// loader brings meanwhile.
//
//   GraphFeedCommand command;
//   command.model.path = "dlrm.onnx";
//   command.input = "clicks.csv";
//   OPTRAIL_ASSIGN_OR_RETURN(const ExitCode code,
//                            FeedGraph(command, std::cout));

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/exit_code.h"
#include "graph/input/loader.h"
#include "graph/runner/feeder.h"
#include "suites/graph/run_graph.h"

namespace optrail::suites {

struct GraphFeedCommand {
  GraphRunCommand model;  // and how it is run, recorded and printed
  std::string input;      // graph/input/input_source.h
  graph::LoaderOptions loader;
  graph::FeederOptions feeder;
  // Every read takes so much longer, as from remote storage.
  absl::Duration read_latency;
};

// Prints what a batch and a sample take and what holds the model back.
// kNotEnoughData where the machine was too busy to tell.
absl::StatusOr<ExitCode> FeedGraph(const GraphFeedCommand& command,
                                   std::ostream& out);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_FEED_GRAPH_H_
