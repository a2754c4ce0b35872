#ifndef OPTRAIL_TRACKER_WORKLOAD_WORKLOAD_TIME_H_
#define OPTRAIL_TRACKER_WORKLOAD_WORKLOAD_TIME_H_

// What a run of a workload takes, from the benchmarks of its layers: by default
// configs, tuned ones and the best backend, layer by layer, the slowest first.
//
//   for (const WorkloadTime& time : WorkloadTimes(run)) {
//     std::cout << WorkloadTable(time).ToText() << WorkloadSummary(time);
//   }
//
// It is the sum of calls times median time: operators that run one after
// another, each as warm as the benchmark finds it. What a model does between
// them is not in it.

#include <string>
#include <vector>

#include "base/text/table.h"
#include "tracker/proto/run.pb.h"

namespace optrail::tracker {

// All times are those of all calls of a layer. 0: not measured.
struct LayerTime {
  proto::WorkloadLayer layer;
  double default_ns = 0;  // the device kind's own backend
  double tuned_ns = 0;
  double best_ns = 0;  // of all backends and configs
  std::string best_backend;
  // By the ceilings of the machine, for the work as the operator counts it; no
  // more than best_ns, where an algorithm does less of it.
  double limit_ns = 0;
  // Whether the model's time has it; else it is another way to compute a part.
  bool counts = true;
  double share = 0;  // of best_ns in that of all layers that count
};

// The time of the ways to compute the same, by the best backends: fused and
// separate.
struct PartTime {
  struct Way {
    std::string way;
    double best_ns = 0;
  };
  std::string part;
  std::vector<Way> ways;  // at least two, the one that counts first
};

// The model by a library, ours in the holes: where it has no such operator, or
// none that is fit to compare.
struct LibraryTime {
  std::string backend;  // "onednn"
  std::string library;  // "oneDNN 2.6.3"
  int layers = 0;       // that are its own
  double time_ns = 0;
  double ours_ns = 0;              // of time_ns what is ours
  std::vector<std::string> holes;  // layers that are ours, the slowest first
};

struct WorkloadTime {
  std::string name;
  int threads = 0;
  std::vector<LayerTime> layers;  // by best_ns, the slowest first

  // Totals over the layers that count and were measured; a layer that is not
  // tuned takes its default.
  int counted = 0;
  int measured = 0;
  int tuned = 0;  // of those that were measured
  double default_ns = 0;
  double tuned_ns = 0;
  double best_ns = 0;
  double limit_ns = 0;  // 0: not known of every layer

  std::vector<LibraryTime> libraries;  // by time
  std::vector<PartTime> parts;  // by name, of ways that were measured whole
  std::vector<std::string> missing;  // "softmax rows=1,cols=2/f32"
};

// One for each number of threads that the run has benchmarks of. Empty for a
// run of no workload.
std::vector<WorkloadTime> WorkloadTimes(const proto::Run& run);

// "softmax rows=1,cols=2/f32".
std::string LayerName(const proto::WorkloadLayer& layer);

// By layer of the run whether it counts for the model: the way that is listed
// first of each part does, and so does a layer of no part.
std::vector<bool> LayersThatCount(const proto::Run& run);

// Layers that were measured.
Table WorkloadTable(const WorkloadTime& time);

// The totals, also by libraries and what the machine allows; what fusion gains,
// part by part; layers that lack a time.
std::string WorkloadSummary(const WorkloadTime& time);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_WORKLOAD_WORKLOAD_TIME_H_
