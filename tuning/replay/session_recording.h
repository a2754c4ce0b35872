#ifndef OPTRAIL_TUNING_REPLAY_SESSION_RECORDING_H_
#define OPTRAIL_TUNING_REPLAY_SESSION_RECORDING_H_

// A tuning session that tried many configs, as a recording that strategies are
// judged on (recording.h): a Kernel Tuner cache with time and, where it was
// metered, energy of every trial, and what compiling told.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const std::string json,
//                            RecordingOf(session));

#include <string>

#include "absl/status/statusor.h"
#include "tuning/proto/session.pb.h"

namespace optrail::tuning {

// InvalidArgument if no trial has a time.
absl::StatusOr<std::string> RecordingOf(const proto::Session& session);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_REPLAY_SESSION_RECORDING_H_
