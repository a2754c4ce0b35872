#ifndef OPTRAIL_TRACKER_HISTORY_INDEX_INDEX_ROWS_H_
#define OPTRAIL_TRACKER_HISTORY_INDEX_INDEX_ROWS_H_

// How the index stores what a run says of a series: in two parts, one that
// differs from run to run and one that mostly repeats and is stored once
// (index.proto). Each carries a checksum.
//
//   const std::string bytes = EncodeObservation(observation);
//   proto::IndexedObservation stored;
//   OPTRAIL_RETURN_IF_ERROR(DecodeRecord(bytes, &stored));
//   OPTRAIL_RETURN_IF_ERROR(SetObservation(stored, &observation));

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tracker/history/index/index.pb.h"
#include "tracker/series/series.h"

namespace optrail::tracker {

std::string EncodeObservation(const Observation& observation);
std::string EncodeAttributes(const Observation& observation);

// Each sets the fields of its part and leaves the others; attributes come
// first. DataLoss if the stored ones don't fit together.
absl::Status SetObservation(const proto::IndexedObservation& stored,
                            Observation* result);
absl::Status DecodeAttributes(absl::string_view bytes, Observation* result);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_INDEX_INDEX_ROWS_H_
