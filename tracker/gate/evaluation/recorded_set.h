#ifndef OPTRAIL_TRACKER_GATE_EVALUATION_RECORDED_SET_H_
#define OPTRAIL_TRACKER_GATE_EVALUATION_RECORDED_SET_H_

// Runs of identical code that were recorded one after another, as a file small
// enough to be kept.
//
//   OPTRAIL_ASSIGN_OR_RETURN(RecordedSet set, ReadRecordedSet("runs.tsv"));
//
// One line per benchmark: its name, then for each run its processes separated
// by spaces; the fields are separated by tabs, and a field is empty where a run
// was contended. A process is its median in ns, which may be followed by the
// fastest sample and by the calibration loops in ns and the share of samples
// that were contended: "43210/42900@arithmetic,l1,l2,l3,memory,contended"; with
// an f behind the @, loops are the fastest readings and no medians, and the
// first is "vector".

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tracker/proto/run.pb.h"

namespace optrail::tracker {

struct RecordedSet {
  std::string name;
  std::vector<proto::Run> runs;  // without ids and times
};

// Plain or compressed (base/file/compression.h). InvalidArgument, with file and
// line, if it is none.
absl::StatusOr<RecordedSet> ReadRecordedSet(const std::string& path);

// Makes one of a history whose runs are of the same code.
absl::Status ExportRecordedSet(const std::string& dir, const std::string& path);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_GATE_EVALUATION_RECORDED_SET_H_
