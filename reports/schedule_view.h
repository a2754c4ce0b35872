#ifndef OPTRAIL_REPORTS_SCHEDULE_VIEW_H_
#define OPTRAIL_REPORTS_SCHEDULE_VIEW_H_

// What a session over schedules tried, made again from its record: traces are
// replayed (tuning/schedule), nothing is compiled.
//
//   const absl::optional<ScheduleView> view =
//       ViewOfSchedule(session, converted);

#include "absl/types/optional.h"
#include "reports/report_data.h"
#include "tuning/proto/session.pb.h"

namespace optrail::reports {

// nullopt for other sessions. `converted` has its trials and knobs.
absl::optional<ScheduleView> ViewOfSchedule(const proto::Session& session,
                                            const TuningSession& converted);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_SCHEDULE_VIEW_H_
