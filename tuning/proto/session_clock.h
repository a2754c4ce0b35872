#ifndef OPTRAIL_TUNING_PROTO_SESSION_CLOCK_H_
#define OPTRAIL_TUNING_PROTO_SESSION_CLOCK_H_

// ClockNs is how long a session worked by the clock:
//
//   const double seconds = tuning::ClockNs(session) / 1e9;
//
// Session.elapsed_ns is what budgets pay for, and they do not pay for opening
// processes. That takes time and energy all the same. Waiting for other
// sessions on the device is not the session's.

#include <cstdint>

#include "tuning/proto/session.pb.h"

namespace optrail::tuning {

inline int64_t ClockNs(const proto::Session& session) {
  return session.elapsed_ns() + session.time().effort().open_ns();
}

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_PROTO_SESSION_CLOCK_H_
