#ifndef OPTRAIL_TRACKER_HISTORY_COPY_H_
#define OPTRAIL_TRACKER_HISTORY_COPY_H_

// CopyHistory makes another store hold what a history holds, byte for byte, and
// proves it: a folder goes into PostgreSQL, or back.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const CopyReport report, CopyHistory(from, to));
//   if (report.IsEqual()) std::cout << report.from_digest;
//
// Interrupted, the next call copies what is left. It merges nothing: what only
// `to` holds, or holds otherwise, stays and makes both unequal. History::
// MergeFrom is for histories that grew apart.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tracker/history/history.h"

namespace optrail::tracker {

struct CopyReport {
  int64_t copied = 0;
  int64_t already_there = 0;
  int64_t records = 0;               // of `from`, read back from both sides
  std::vector<BadFile> bad_files;    // in `from`; not copied
  std::vector<std::string> unequal;  // places that differ or that one lacks
  // SHA-256 over the places below the history and the bytes of all records.
  std::string from_digest, to_digest;

  bool IsEqual() const {
    return bad_files.empty() && unequal.empty() && from_digest == to_digest;
  }
};

// Calls `take` with the folder, id and bytes of each intact record, tombstones
// first, until it fails; the others go to `bad_files`.
absl::Status ForEachRecord(const RecordStore& store,
                           std::vector<BadFile>* bad_files,
                           const std::function<absl::Status(
                               absl::string_view folder, const std::string& id,
                               const std::string& bytes)>& take);

absl::StatusOr<CopyReport> CopyHistory(const History& from, const History& to);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_COPY_H_
