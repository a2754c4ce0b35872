#ifndef OPTRAIL_REPORTS_SESSION_VIEW_H_
#define OPTRAIL_REPORTS_SESSION_VIEW_H_

// Tuning sessions for a report: the tracker's analysis of each, with its
// findings, and the levels of knobs that the page draws by.
//
//   data.sessions = ConvertSessions(sessions);  // the newest first

#include <vector>

#include "reports/report_data.h"
#include "tuning/proto/context.pb.h"
#include "tuning/proto/session.pb.h"

namespace optrail::reports {

Commit ConvertCommit(const proto::Commit& commit);

// The newest first. `hardware` is left to the caller, who numbers it.
std::vector<TuningSession> ConvertSessions(
    const std::vector<proto::Session>& sessions);

// One by itself, without findings.
TuningSession ConvertSession(const proto::Session& session);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_SESSION_VIEW_H_
