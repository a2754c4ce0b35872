#ifndef OPTRAIL_SUITES_GRAPH_FED_TIMING_H_
#define OPTRAIL_SUITES_GRAPH_FED_TIMING_H_

// TimeFed times a model while a loader brings its input, both at once, and
// tells what holds them back.
//
//   FedModel model;
//   model.compute = [&] { return runner->Run(); };
//   model.inputs = runner->InputAddresses();
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const FedTimes times,
//       TimeFed(model, *source, *graph::SampleInputs(graph), loader_options,
//               *device));
//   std::cout << HeldBackText(times) << "\n";
//
// A call of the one stopwatch is a round of batches: the next batch is waited
// for, copied to the model and computed. The loader starts with nothing ahead,
// and a round uses up what it may have ahead twice over: what it does between
// two samples of the stopwatch hardly counts.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/input/loader.h"
#include "ops/core/cpu_device.h"
#include "suites/stopwatch/stopwatch.h"

namespace optrail::suites {

struct FedTimes {
  double alone_ns = 0;  // the model without a loader, a batch; 0: unknown
  Sampling fed;         // the model with the loader, a batch
  // Parts of the time of `fed`: for how long the model waits for input, and for
  // how long what came is copied.
  double waits = 0, copies = 0;
  // Parts of the time of the loader's threads.
  double reads = 0, parses = 0, rests = 0;

  bool is_known() const { return fed.outcome == proto::OK; }
  bool is_held_back() const;
};

// The model is held back by the loader where it waits for more of the time.
inline constexpr double kHeldBack = .05;

struct FedModel {
  std::function<absl::Status()> compute;  // one call
  std::vector<char*> inputs;              // where it reads each of them
  int64_t batch = 1;                      // samples of a call
};

// Errors are the loader's and the model's.
absl::StatusOr<FedTimes> TimeFed(const FedModel& model,
                                 const graph::InputSource& source,
                                 const std::vector<graph::SampleInput>& inputs,
                                 const graph::LoaderOptions& options,
                                 ops::CpuDevice& device);

// "The loader holds the model back: it waits for input 87.5% of the time." and
// what to change, or that it does not.
std::string HeldBackText(const FedTimes& times);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_FED_TIMING_H_
