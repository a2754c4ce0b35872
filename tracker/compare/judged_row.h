#ifndef OPTRAIL_TRACKER_COMPARE_JUDGED_ROW_H_
#define OPTRAIL_TRACKER_COMPARE_JUDGED_ROW_H_

// A row of a comparison with what follows from it, as tables show both.
//
//   JudgedRow judged;
//   judged.row = row;
//   judged.action = proto::FAIL;

#include <string>

#include "tracker/compare/compare.h"
#include "tracker/proto/policy.pb.h"

namespace optrail::tracker {

// A row and what a policy makes of it; of a comparison the row alone.
struct JudgedRow {
  Row row;
  std::string suite, hardware_id;
  std::string baseline;  // BaselineText of what it was judged against
  // The consequence: FAIL counts towards exit code 1, or 3 for can't tell.
  proto::Action action = proto::IGNORE;
  // The exemption's reason and date, or the acknowledgement, if one held.
  std::string exempted;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_JUDGED_ROW_H_
