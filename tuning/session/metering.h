#ifndef OPTRAIL_TUNING_SESSION_METERING_H_
#define OPTRAIL_TUNING_SESSION_METERING_H_

// Metering decides which trials of a search are metered. Time takes
// milliseconds to read and joules take seconds, so every trial reads time, few
// read the costly metrics, and those of the others are predicted.
//
//   Metering metering({"joules"}, /*trials=*/40);
//   request.set_meter_below_ns(metering.MeterBelowNs(config, objectives));
//   ...
//   metering.Add(trial);
//   const PredictedTrial told = metering.CompletedFor(objectives, trial);
//   proposer.TellPredicted(told.trial, told.deviation, told.objective);
//
// All configs of a task do the same work, so a costly metric is nearly a line
// in time: the joules of a device that is on, and those of the work. The
// difference from the line is a Gaussian process over the knobs
// (gaussian_process.h) with compile facts (registers, shared memory) as linear
// terms. Deterministic: the same trials in the same order give the same
// answers.

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/session.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::tuning {

// Configs of a session that are metered at most: trials of the search,
// finalists that it did not meter, and the default.
inline constexpr int kMeteredConfigs = 12;
// Trials of a search that are metered at most. One trial less where a limit
// follows the best value of another metric, whose config is read beside the
// finalists.
inline constexpr int kMeteredTrials = 8;

// A race against the fastest ends only at so many times its time: such a config
// takes more of a costly metric, too, and a search learns more from a time than
// from a bound.
inline constexpr double kRaceOfMetered = 10;

// A trial with predictions in place of costly metrics that were not read.
struct PredictedTrial {
  proto::Trial trial;
  // The first objective that depends on a prediction, and the relative standard
  // deviation of that prediction; 0 if none does.
  int objective = 0;
  double deviation = 0;
};

class Metering {
 public:
  // `trials`: how many the search is going to have, over which the readings are
  // spread; 0: nobody knows.
  Metering(std::vector<std::string> costly, int64_t trials)
      : costly_(std::move(costly)), budget_(trials) {}

  // False: nothing is costly, and everything is read.
  bool active() const { return !costly_.empty(); }

  // What takes less time than this could be the best by `objectives`, if the
  // model is a standard deviation too high; 0: not to be metered at all.
  double MeterBelowNs(const proto::Config& config,
                      const std::vector<proto::Objective>& objectives) const;

  // Returns whether all costly metrics of the trial were read.
  bool IsMetered(const proto::Trial& trial) const;
  void Add(const proto::Trial& trial);
  // From before this search.
  void AddKnown(const proto::Trial& trial);

  // The trial with predictions in place of costly metrics that were not read,
  // `deviations` standard deviations above the mean. Unchanged while nothing
  // was metered, or without a time.
  proto::Trial Completed(const proto::Trial& trial,
                         double deviations = 0) const;
  std::vector<proto::Trial> Completed(absl::Span<const proto::Trial> trials,
                                      double deviations) const;

  // The same for one trial, with how uncertain its objectives are.
  PredictedTrial CompletedFor(const std::vector<proto::Objective>& objectives,
                              const proto::Trial& trial) const;

  // The least time of a trial that worked.
  absl::optional<double> best_time_ns() const { return best_time_ns_; }
  const absl::optional<proto::Config>& fastest() const { return fastest_; }

 private:
  struct Prediction {
    double value = 0;
    double relative_deviation = 0;
  };
  // Predicts costly_[metric] for trials with a time.
  std::vector<Prediction> Predict(
      size_t metric, absl::Span<const proto::Trial* const> trials) const;

  // Returns whether costly_[metric] of the trial can be predicted and was not
  // read.
  bool Lacks(const proto::Trial& trial, size_t metric) const;
  void AddPrediction(size_t metric, const Prediction& prediction,
                     double deviations, proto::Trial* trial) const;

  std::vector<std::string> costly_;
  int64_t budget_;
  std::vector<proto::Trial> metered_;  // all costly metrics are known
  int64_t trials_ = 0;
  int readings_ = 0;  // of the trials that were added
  absl::optional<double> best_time_ns_;
  absl::optional<proto::Config> fastest_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_METERING_H_
