#ifndef OPTRAIL_SUITES_GRAPH_FED_TIMING_H_
#define OPTRAIL_SUITES_GRAPH_FED_TIMING_H_

// TimeFed times a model while a loader brings its input, both at once, and
// tells what holds them back.
//
//   FedModel model;
//   model.compute = [&] { return runner->Run(); };
//   model.feeder = feeder;
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const FedTimes times,
//       TimeFed(model, *source, *graph::SampleInputs(graph), loader_options,
//               *device));
//   std::cout << HeldBackText(times, feeder_options) << "\n";
//
// A call of the one stopwatch is a round of batches: the next batch is waited
// for, brought to the model and computed. The loader starts with nothing ahead,
// and a round uses up what it may have ahead twice over: what it does between
// two samples of the stopwatch hardly counts.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "graph/input/loader.h"
#include "graph/runner/feeder.h"
#include "ops/core/device.h"
#include "suites/stopwatch/stopwatch.h"

namespace optrail::suites {

struct FedTimes {
  double alone_ns = 0;  // the model without a loader, a batch; 0: unknown
  Sampling fed;         // the model with the loader, a batch
  // Parts of the time of `fed`: for how long the thread that feeds the model
  // waits for the loader, and for how long it copies what came.
  double waits = 0, copies = 0;
  // For how long a GPU computes nothing: the time that the model does not take
  // alone. Unknown on a CPU, whose one thread feeds and computes.
  absl::optional<double> idle;
  // Parts of the time of the loader's threads.
  double reads = 0, parses = 0, rests = 0;
  // The loader had these options.
  graph::LoaderOptions loader;
  int64_t batch = 1;  // samples of a call

  bool is_known() const { return fed.outcome == proto::OK; }
  bool is_held_back() const;
};

// The model is held back where it waits for input for more of the time.
inline constexpr double kHeldBack = .05;

struct FedModel {
  std::function<absl::Status()> compute;  // one call
  graph::Feeder* feeder = nullptr;        // of its inputs
  int64_t batch = 1;                      // samples of a call
};

// Errors are the loader's and the model's.
absl::StatusOr<FedTimes> TimeFed(const FedModel& model,
                                 const graph::InputSource& source,
                                 const std::vector<graph::SampleInput>& inputs,
                                 const graph::LoaderOptions& options,
                                 ops::Device& device);

// "The loader holds the model back: it waits for input 87.5% of the time." and
// what to change, or that it does not. `feeder`: how it was fed.
std::string HeldBackText(const FedTimes& times,
                         const graph::FeederOptions& feeder);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_FED_TIMING_H_
