#ifndef OPTRAIL_TUNING_REPLAY_RECORDINGS_KERNEL_TUNER_CACHE_H_
#define OPTRAIL_TUNING_REPLAY_RECORDINGS_KERNEL_TUNER_CACHE_H_

// A recorded space as a Kernel Tuner cache file, which replay reads.

#include <string>
#include <vector>

#include "tuning/replay/recordings/recording_log.h"
#include "tuning/replay/recordings/spaces.h"

namespace optrail::tuning::recordings {

// The entries of `space` at `size` among `entries`, in the order of the space's
// valid configs; the last of several for a config counts. `missing` becomes the
// number of valid configs without one.
std::string ToKernelTunerCache(const Space& space, const Size& size,
                               const std::vector<LogEntry>& entries,
                               const std::string& device_name, int& missing);

}  // namespace optrail::tuning::recordings

#endif  // OPTRAIL_TUNING_REPLAY_RECORDINGS_KERNEL_TUNER_CACHE_H_
