#ifndef OPTRAIL_SUITES_TUNE_SEARCH_WITHIN_H_
#define OPTRAIL_SUITES_TUNE_SEARCH_WITHIN_H_

// RestrictTo makes a part of a space a space of its own: some knobs move, the
// others keep the values of a config, which is the default there. A session on
// it proves its winner against that very config.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const std::string text,
//       RestrictTo({config, {"unroll"}}, task, hardware, &space));
//
// The part is written as constraints, so the record of a session holds it and
// its hash differs from that of the whole space.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/config.pb.h"

namespace optrail::suites {

struct SearchWithin {
  proto::Config around;
  std::vector<std::string> knobs;  // those that move
};

// Replaces the space of `task` by the part and returns the part's text.
// InvalidArgument for a knob that the space lacks, for a config that is not
// valid in it, and for a task whose configs no space lists.
absl::StatusOr<std::string> RestrictTo(const SearchWithin& within,
                                       const TaskEntry& task,
                                       const proto::Hardware& hardware,
                                       TaskSpace* space);

// Puts the space of this text in the place of the task's.
absl::Status ReplaceSpace(const std::string& text, const TaskEntry& task,
                          const proto::Hardware& hardware, TaskSpace* space);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_SEARCH_WITHIN_H_
