#ifndef OPTRAIL_REPORTS_SAMPLE_SAMPLE_SESSIONS_H_
#define OPTRAIL_REPORTS_SAMPLE_SAMPLE_SESSIONS_H_

// Made-up tuning sessions: searches of spaces whose knobs matter by known
// amounts, one of them over schedules, one of a program's settings, and one for
// joules and time.

#include "reports/sample/sample_parts.h"
#include "tuning/proto/session.pb.h"

namespace optrail::reports {

// The session of an operator; every sixth is over schedules.
proto::Session MakeSession(const SampleOptions& options, int index);

// A session of `optrail tune --command`: a server's requests per second.
proto::Session MakeCommandSession(const SampleOptions& options);

// Makes a session of an operator on a GPU for joules and time, with a proof
// whose rounds are kept.
proto::Session MakeEnergySession(const SampleOptions& options);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_SAMPLE_SAMPLE_SESSIONS_H_
