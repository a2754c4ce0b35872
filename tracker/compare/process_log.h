#ifndef OPTRAIL_TRACKER_COMPARE_PROCESS_LOG_H_
#define OPTRAIL_TRACKER_COMPARE_PROCESS_LOG_H_

// The values that a comparison takes from one recorded process.
//
//   const auto log = ProcessLogOf(measurement, "time");
//   // log->value: logarithm of its fastest sample; log->machine
//
// A process that kept too few samples has a median alone, and no shape. A
// median is not compared with a fastest sample: UseMedian().

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tracker/compare/process_levels.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::tracker {

// nullopt where it holds an aggregate only, or nothing that has a logarithm.
absl::optional<ProcessLog> ProcessLogOf(const proto::Measurement& measurement,
                                        absl::string_view metric);

// Makes a process one that has its median alone, as those it is compared with.
void UseMedian(ProcessLog* process);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_PROCESS_LOG_H_
