#ifndef OPTRAIL_REPORTS_SAMPLE_SAMPLE_SESSIONS_H_
#define OPTRAIL_REPORTS_SAMPLE_SAMPLE_SESSIONS_H_

// Made-up tuning sessions: searches of spaces whose knobs matter by known
// amounts, one of them over schedules, and one of a program's settings.

#include "reports/sample/sample_parts.h"
#include "tuning/proto/session.pb.h"

namespace optrail::reports {

// The session of an operator; every sixth is over schedules.
proto::Session MakeSession(const SampleOptions& options, int index);

// A session of `optrail tune --command`: a server's requests per second.
proto::Session MakeCommandSession(const SampleOptions& options);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_SAMPLE_SAMPLE_SESSIONS_H_
