#ifndef OPTRAIL_SUITES_GRAPH_GRAPH_RECORD_H_
#define OPTRAIL_SUITES_GRAPH_GRAPH_RECORD_H_

// RunOfGraph makes a run for the history of what `optrail graph run` measured:
// one benchmark, the graph end to end, with the time in each kind of kernel and
// the memory as metrics. Tracker and gate treat it like any other.
//
//   const proto::Run run = RunOfGraph(measured, context);
//   OPTRAIL_RETURN_IF_ERROR(RecordGraph(measured, history, store));

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/worker/run_context.h"
#include "tracker/proto/run.pb.h"

namespace optrail::suites {

struct MeasuredGraph {
  std::string model;           // "resnet50_bn"
  std::string device = "cpu";  // the name of its kind
  std::string type = "f32";
  int threads = 1;
  std::string fuse;      // as the flag --fuse
  bool untuned = false;  // every operator had its default config
  bool fed = false;      // a loader brought the input meanwhile
  // How it was served, behind "/serve"; "": it was called again and again.
  std::string served;
  std::vector<proto::MetricSamples> metrics;  // beside those below
  int64_t started_unix_ns = 0;
  Sampling whole;
  std::map<std::string, double> kernels_ns;  // by kernel, of all its steps
  int64_t arena_bytes = 0;
  double flop = 0;
};

// The benchmark is called "graph/MODEL/threads=1" on a CPU and
// "graph/MODEL/cuda" on a GPU, with "/bf16" behind it in that type, and with
// "/fuse=MODE" behind it for other modes than rules, "/untuned", "/fed" where a
// loader brought the input and "/serve" with the load where requests did. One
// process measured it; runs at one commit are one point, so several calls are
// several processes.
proto::Run RunOfGraph(const MeasuredGraph& measured, const RunContext& context);

// A metric of one value.
proto::MetricSamples MetricOf(const std::string& metric,
                              const std::string& unit, double value,
                              proto::Direction direction);

// Appends that run to a history, of the folders that the command line names,
// and says so on standard error.
absl::Status RecordGraph(const MeasuredGraph& measured,
                         const std::string& history, const std::string& store);

// Appends a run of a suite in the given surroundings, likewise.
absl::Status RecordRun(const proto::Run& run, const RunContext& context);
// Makes such a run without its results.
proto::Run EmptyRun(const std::string& suite, int64_t started_unix_ns,
                    proto::DeviceKind device, const RunContext& context);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_GRAPH_RECORD_H_
