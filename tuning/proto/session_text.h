#ifndef OPTRAIL_TUNING_PROTO_SESSION_TEXT_H_
#define OPTRAIL_TUNING_PROTO_SESSION_TEXT_H_

// SessionTaskText is the name of the task that a session tuned.
//
//   SessionTaskText(session)
//       ->  "softmax/cpu/rows=16,cols=16/f32/threads=1/hot"
//       ->  "command_run_sh/cpu/id=01234567"
//
// Commands of one name may run different programs, so theirs ends in the start
// of the fingerprint of the command, its metrics and its program. Commands of
// sessions from before that was noted have none.

#include <string>

#include "tuning/proto/session.pb.h"

namespace optrail::tuning {

std::string SessionTaskText(const proto::Session& session);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_PROTO_SESSION_TEXT_H_
