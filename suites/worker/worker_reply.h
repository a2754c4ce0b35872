#ifndef OPTRAIL_SUITES_WORKER_WORKER_REPLY_H_
#define OPTRAIL_SUITES_WORKER_WORKER_REPLY_H_

// The answers of a worker process where something went wrong: each function
// says in which step it did, and the status decides which outcome that is.
//
//   if (!artifact.ok()) return PrepareFailed(artifact.status());

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tuning/proto/evaluator.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::suites {

// The time in nanoseconds that so many calls of a contender take which another
// program computes (WorkerReply.AskElsewhere).
using TimeElsewhere =
    std::function<absl::StatusOr<int64_t>(int contender, int64_t calls)>;

proto::Evaluation EvaluationOf(proto::Outcome outcome,
                               absl::string_view detail = "");

inline bool IsOk(const proto::Evaluation& evaluation) {
  return evaluation.trial().outcome() == proto::OK;
}

// Finding, compiling or loading: UNSUPPORTED, OUT_OF_MEMORY, COMPILE_ERROR or
// INVALID.
proto::Evaluation PrepareFailed(const absl::Status& status);
// A call: WRONG_RESULT or LAUNCH_ERROR.
proto::Evaluation RunFailed(const absl::Status& status);
// Making a timer: UNSUPPORTED where the device has no such way of timing,
// OUT_OF_MEMORY or LAUNCH_ERROR.
proto::Evaluation TimerFailed(const absl::Status& status);
// Metering: UNSUPPORTED where the meter must not be believed, or LAUNCH_ERROR.
proto::Evaluation MeterFailed(const absl::Status& status);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_WORKER_REPLY_H_
