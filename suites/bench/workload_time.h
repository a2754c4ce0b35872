#ifndef OPTRAIL_SUITES_BENCH_WORKLOAD_TIME_H_
#define OPTRAIL_SUITES_BENCH_WORKLOAD_TIME_H_

// What a run of a workload takes, from the benchmarks of its layers: by default
// configs, tuned ones and the best backend, layer by layer, the slowest first.
//
//   const WorkloadTime time = WorkloadTimeOf(workload, run, /*threads=*/1);
//   std::cout << WorkloadTable(time).ToText() << WorkloadSummary(time);
//
// It is the sum of calls times median time: operators that run one after
// another, each as warm as the benchmark finds it. What a model does between
// them is not in it.

#include <string>
#include <vector>

#include "base/table.h"
#include "suites/proto/workload.pb.h"
#include "tracker/proto/run.pb.h"

namespace optrail::suites {

// All times are those of all calls of a layer. 0: not measured.
struct LayerTime {
  proto::Workload::Layer layer;
  double default_ns = 0;  // the device kind's own backend
  double tuned_ns = 0;
  double best_ns = 0;  // of all backends and configs
  std::string best_backend;
  // Whether the model's time has it; else it is another way to compute a part.
  bool counts = true;
};

struct WorkloadTime {
  std::string name;
  int threads = 0;
  std::vector<LayerTime> layers;  // by best_ns, the slowest first
};

WorkloadTime WorkloadTimeOf(const proto::Workload& workload,
                            const proto::Run& run, int threads);

// Thread counts that the run has benchmarks of.
std::vector<int> ThreadsOf(const proto::Run& run);

Table WorkloadTable(const WorkloadTime& time);

// Totals by default, tuned and best, over the layers that have all of them;
// what fusion gains, part by part; layers that lack a time.
std::string WorkloadSummary(const WorkloadTime& time);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_BENCH_WORKLOAD_TIME_H_
