#ifndef OPTRAIL_TRACKER_HISTORY_REPAIR_H_
#define OPTRAIL_TRACKER_HISTORY_REPAIR_H_

// Everything that can be wrong with a history, each thing by its name, and what
// can be done about it without losing anything.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const CheckReport report,
//                            CheckHistory(history, options));
//   OPTRAIL_RETURN_IF_ERROR(RepairHistory(history, report).status());
//
// Damaged files move to <history>/quarantine, where nothing reads them, with
// the reason beside them; an intact record in the wrong place goes to its own.
// Nothing is written outside of the history, whatever its files say, and no
// symbolic link is followed. Nothing is ever deleted or changed: what is only
// odd (a clock that ran backwards, a commit that git no longer knows, a field
// of a newer version) is reported and stays.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tracker/history/history.h"

namespace optrail::tracker {

enum class HistoryProblem {
  // Damage: readers skip the file, repair moves it away.
  kTruncated,        // shorter than it was written, or no record at all
  kChanged,          // its checksum says so: flipped bits, half a merge
  kUnreadable,       // the system does not let it be read, or it is too large
  kNoFile,           // a link, pipe, device, socket, or a folder called x.pb
  kImpossibleValue,  // NaN, infinite or negative times, samples of no calls, an
                     // id of another form
  kDuplicateId,      // a second file of a record that is in its place
  kMisplaced,        // it is not where its id says; moved to its place if free

  // Oddities: the record counts.
  kNewerSchema,     // holds fields that this version does not know
  kClockBackwards,  // started before its commit, or an older commit's run, or
                    // in the future; series go by commits all the same
  kUnknownCommit,   // git does not know its commit: history was rewritten
  kResurrected,     // a tombstone says that it was taken away
  kLeftover,        // a temporary file of a writer that was killed
};
// "cut off", "bytes changed", "duplicate id", ...
absl::string_view HistoryProblemName(HistoryProblem problem);
bool IsDamage(HistoryProblem problem);

struct HistoryFinding {
  HistoryProblem problem = HistoryProblem::kUnreadable;
  std::string path;
  std::string detail;  // what was found and what was expected
  std::string place;   // kMisplaced: where it belongs
};

struct CheckOptions {
  // Whether git knows a commit; null does not ask. An error ends the asking and
  // is a note.
  std::function<absl::StatusOr<bool>(const std::string& commit)> knows_commit;
  int64_t now_unix_ns = 0;  // 0: nothing lies in the future
  int threads = 0;          // 0: one per core
};

struct CheckReport {
  int64_t runs = 0;
  int64_t sessions = 0;
  int64_t triage_records = 0;
  int64_t bytes = 0;
  std::vector<HistoryFinding> findings;  // damage first, then by path
  std::vector<std::string> notes;

  int CountDamaged() const;
};

// Reads every byte of every file and changes nothing.
absl::StatusOr<CheckReport> CheckHistory(const History& history,
                                         const CheckOptions& options = {});

struct Repaired {
  std::string from;
  std::string to;
  std::string reason;
};

// Moves what is damaged; a file that has gone since is left out.
absl::StatusOr<std::vector<Repaired>> RepairHistory(const History& history,
                                                    const CheckReport& report);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_REPAIR_H_
