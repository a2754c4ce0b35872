#ifndef OPTRAIL_TRACKER_CHECKOUT_PROCESS_RESULT_H_
#define OPTRAIL_TRACKER_CHECKOUT_PROCESS_RESULT_H_

// The result of one process that measures.

#include <string>
#include <vector>

#include "tracker/import/import.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::tracker {

struct ProcessResult {
  // Its results, in any format that `optrail import` reads; empty if it failed.
  std::vector<ImportedFile> files;
  // "killed by signal 11 (Segmentation fault)"; empty if it did not fail.
  std::string failure;
  proto::Outcome outcome = proto::OK;  // CRASHED, TIMED_OUT, ...
  std::string stderr_tail;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_CHECKOUT_PROCESS_RESULT_H_
