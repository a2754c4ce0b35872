#ifndef OPTRAIL_TUNING_SESSION_SHARED_KNOBS_H_
#define OPTRAIL_TUNING_SESSION_SHARED_KNOBS_H_

// Says what configs that failed have in common, to find the reason faster:
//
//   SharedKnobsText(failed, worked)
//       // "all 73 have unroll=4, none of the 41 that worked"
//
// A value counts if every failed config has it, and fewer than half of those
// that worked.

#include <string>
#include <vector>

#include "tuning/proto/config.pb.h"

namespace optrail::tuning {

// "" for fewer than two failures, and where nothing is shared or nothing
// worked.
std::string SharedKnobsText(const std::vector<proto::Config>& failed,
                            const std::vector<proto::Config>& worked);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_SHARED_KNOBS_H_
