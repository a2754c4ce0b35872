#ifndef OPTRAIL_TRACKER_AB_SIDES_H_
#define OPTRAIL_TRACKER_AB_SIDES_H_

// Two sides of a comparison, measured interleaved, judged, printed and
// recorded, whether they are binaries or commits.
//
//   OPTRAIL_ASSIGN_OR_RETURN(int exit_code,
//                            CompareSides(options, {a, b}, out));

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tracker/ab/ab_command.h"
#include "tracker/checkout/process_result.h"
#include "tuning/proto/context.pb.h"

namespace optrail::tracker {

struct MeasuredSide {
  std::string name;      // as the user gave it
  proto::Commit commit;  // empty: a binary
  std::function<absl::StatusOr<ProcessResult>()> run;
};

struct Sides {
  MeasuredSide a, b;
  bool identical = false;  // byte for byte: nothing is compared
  // Takes a regular expression of the benchmarks that are still open. May be
  // null.
  std::function<void(std::string filter)> narrow;
  // AbCommand::code_difference of the two. May be null.
  std::function<std::vector<std::string>()> code_difference;
};

absl::StatusOr<int> CompareSides(const AbCommand& options, const Sides& sides,
                                 std::ostream& out);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_AB_SIDES_H_
