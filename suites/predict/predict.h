#ifndef OPTRAIL_SUITES_PREDICT_PREDICT_H_
#define OPTRAIL_SUITES_PREDICT_PREDICT_H_

// GainPredictor says what tuning a task is expected to bring and how long it
// takes, from the sessions of other shapes, operators and hardware.
//
//   const GainPredictor predictor(history.ListSessions()->sessions);
//   if (const auto prediction = predictor.Predict(task)) {
//     Use(prediction->gain, prediction->gain_low, prediction->gain_high);
//   }
//
// Gains are those of proofs: .15 where the winner is 15% faster than the
// default; 0 where the default stayed. A session of time whose winner was
// proven, or whose default stayed, is learned from; the newest of each task.
//
// The method is a kernel regression of log(1 + gain): a session at a distance d
// has the weight exp(-d / 2), where TaskDistance counts doublings of a
// dimension, and tasks that it does not compare have a distance of their own.
// If the time of a call is known, each doubling of it counts two: short calls
// and long ones of one operator gain differently, and those of others alike.
// The interval adds the errors that the regression makes for each session when
// that task is left out (if the time of a call is an estimate, with estimates
// of theirs), by the same weights, and one error without bound on
// either side, as in conformal prediction with unequal weights (Tibshirani et
// al., "Conformal Prediction Under Covariate Shift", NeurIPS 2019; there the
// weights are known, here they are a choice, so the coverage is measured:
// ScorePredictions).
//
// Immutable and thread-safe.

#include <functional>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "tracker/history/history.h"
#include "tuning/proto/session.pb.h"

namespace optrail::suites {

// With fewer sessions, however alike, the error without bound weighs more than
// what is left out at either end of a 90% interval.
inline constexpr int kFewestForBounds = 4;

struct Prediction {
  double gain = 0;
  double gain_low = 0, gain_high = 0;  // 90% interval
  double seconds = 0;                  // of a session: the weighted median
  double seconds_low = 0, seconds_high = 0;  // 90% of sessions like it
  int sessions = 0;                          // of other tasks
  std::string nearest_session;               // the most similar of them
  // Fewer than kFewestForBounds sessions leave the upper bounds infinite and
  // the lower ones 0.
};

// Work of one call in units to which its time is nearly proportional; 0 or less
// if unknown.
using WorkFunction = std::function<double(const proto::Task&)>;

class GainPredictor {
 public:
  // Without `work` the time of a task that was never tuned stays unknown.
  // `work` is called from any thread.
  explicit GainPredictor(const std::vector<tracker::SessionInfo>& sessions,
                         WorkFunction work = nullptr);

  // A task whatever its kernel's version: another version of the same task
  // would make the prediction look better than it is.
  static std::string NameOf(proto::Task task);

  // The time of one call of a task's default config.
  struct CallTime {
    double ns = 0;              // 0 if it is not known
    bool is_estimated = false;  // from other tasks
  };

  // From sessions of other tasks alone; nullopt if there is none.
  absl::optional<Prediction> Predict(const proto::Task& task,
                                     CallTime call) const;
  absl::optional<Prediction> Predict(const proto::Task& task) const {
    return Predict(task, CallTime());
  }

  // The gain of the task's own newest session.
  absl::optional<double> Realised(const proto::Task& task) const;

  // The task's own newest session read the time; else it is the task's work
  // times the weighted geometric mean of the time per work of other tasks on
  // the same kind of device. nullopt if there are none.
  absl::optional<CallTime> TimeOf(const proto::Task& task) const;

  // One session, and what Predict said of its task.
  struct Scored {
    std::string session;
    double realised = 0;
    Prediction predicted;
  };
  // Every session against the prediction without it. The default config was
  // timed; if `estimates`, its time too follows from the other sessions.
  std::vector<Scored> LeaveOneOut(bool estimates = false) const;

 private:
  struct Case {
    std::string session;
    std::string name;  // of the task
    proto::Task task;
    double log_gain = 0;
    double seconds = 0;
    double default_ns = 0;   // of one call; 0 if the session does not know it
    double work = 0;         // of one call
    double error = 0;        // of the regression without it
    double estimate_ns = 0;  // the time of a call, as if it were not known
    double estimated_error = 0;  // of the regression with that time
  };
  static double WeightOf(const proto::Task& task, double call_ns,
                         const proto::Task& other, double other_ns);
  // The weighted mean of log(1 + gain) over all tasks but the one of `name`.
  double Mean(const proto::Task& task, double call_ns,
              const std::string& name) const;
  // The time of a call with so much work by the others' time per work; 0 if
  // that says nothing.
  double EstimateNs(const proto::Task& task, double work,
                    const std::string& name) const;

  WorkFunction work_;
  std::vector<Case> cases_;
};

// How good predictions were.
struct PredictionScore {
  int predictions = 0;
  int covered = 0;              // by the interval
  double rank_correlation = 0;  // of predicted and realised gains
  double median_error = 0;      // |predicted - realised|, as gains
};

PredictionScore ScorePredictions(
    const std::vector<GainPredictor::Scored>& predictions);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_PREDICT_PREDICT_H_
