#ifndef OPTRAIL_SUITES_PREDICT_START_ORDER_H_
#define OPTRAIL_SUITES_PREDICT_START_ORDER_H_

// StartOrder says which task of a workload to tune first: the one where a run
// of the workload is expected to save most per second of tuning.
//
//   const std::vector<Start> order = StartOrder(predictor, tasks);
//   std::cerr << StartOrderText(tasks, order);
//   for (const Start& start : order) Tune(tasks[start.task]);
//
// A run saves calls * time of a call * gain. Gain and seconds are
// GainPredictor::Predict's, the time is its TimeOf. Tasks of which
// the predictor does not know all three follow in the order they came in.
//
// It decides the order alone: no task is left out because of it.

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "suites/predict/predict.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::suites {

struct StartTask {
  proto::Task task;
  double calls = 1;  // per run of the workload
};

struct Start {
  int task = 0;  // index into the tasks
  // Absent where the predictor knows too little.
  absl::optional<Prediction> prediction;
  double call_ns = 0;   // of the default config
  double saved_ns = 0;  // by one run of the workload
  double saved_ns_per_second = 0;

  bool known() const { return prediction.has_value(); }
};

// Bytes that a call moves, plus its FLOP at ten for a byte; 0 for an operator
// that is not linked. Only ratios of it are used, on the same kind of device.
double WorkOf(const proto::Task& task);

// Every task once, the one to begin with first.
std::vector<Start> StartOrder(const GainPredictor& predictor,
                              const std::vector<StartTask>& tasks);

// A line for each of the first tasks, with the reason for its place; empty if
// nothing is known of any.
std::string StartOrderText(const std::vector<StartTask>& tasks,
                           const std::vector<Start>& order);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_PREDICT_START_ORDER_H_
