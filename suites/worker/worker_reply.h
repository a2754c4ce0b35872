#ifndef OPTRAIL_SUITES_WORKER_WORKER_REPLY_H_
#define OPTRAIL_SUITES_WORKER_WORKER_REPLY_H_

// The replies of a worker process to what went wrong: each function says in
// which step it did, and the status decides which outcome that is.
//
//   if (!artifact.ok()) return PrepareFailed(artifact.status());

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "suites/proto/worker.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::suites {

// The time in nanoseconds that so many calls of a contender take which another
// program computes (WorkerReply.AskElsewhere).
using TimeElsewhere =
    std::function<absl::StatusOr<int64_t>(int contender, int64_t calls)>;

proto::WorkerReply ReplyOf(proto::Outcome outcome,
                           absl::string_view detail = "");

// Finding, compiling or loading: UNSUPPORTED, OUT_OF_MEMORY, COMPILE_ERROR or
// INVALID.
proto::WorkerReply PrepareFailed(const absl::Status& status);
// A call: WRONG_RESULT or LAUNCH_ERROR.
proto::WorkerReply RunFailed(const absl::Status& status);
// Making a timer: UNSUPPORTED where the device has no such way of timing,
// OUT_OF_MEMORY or LAUNCH_ERROR.
proto::WorkerReply TimerFailed(const absl::Status& status);
// Metering: UNSUPPORTED where the meter must not be believed, or LAUNCH_ERROR.
proto::WorkerReply MeterFailed(const absl::Status& status);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_WORKER_REPLY_H_
