#ifndef OPTRAIL_TRACKER_HISTORY_HISTORY_H_
#define OPTRAIL_TRACKER_HISTORY_HISTORY_H_

// History is a store of immutable protobuf records, one per run and one per
// closed tuning session and one per thing said about them
// (docs/reference/history_format.md). In a folder they are files:
//
//   <history>/runs/2026/20261120T090807Z-1a2b3c4d5e6f.pb
//   <history>/sessions/2026/20261120T081500Z-0f1e2d3c4b5a.pb
//   <history>/triage/2026/20261120T100000Z-5a4b3c2d1e0f.pb
//   <history>/diagnoses/2026/20261120T103000Z-6b5a4c3d2e1f.pb
//   <history>/tombstones/2026/20261120T110000Z-3f2e1d0c9b8a.pb
//
//   OPTRAIL_ASSIGN_OR_RETURN(History history, History::Open(dir));
//   run.set_run_id(NewRecordId(run.started_unix_ns()));
//   OPTRAIL_RETURN_IF_ERROR(history.AppendRun(run));
//   OPTRAIL_ASSIGN_OR_RETURN(RunInfo info, history.FindRun("latest"));
//
// A record is written under a temporary name, synced and then linked to its
// own: no reader sees half of it, a crash loses nothing that was acknowledged,
// writers never overwrite each other, and git or rsync merge two histories by
// copying files. Each file ends with a checksum of itself and still is a plain
// message that `protoc --decode` reads.
//
// One bad file never hides the others: it is reported and skipped.
//
// The same records may lie in PostgreSQL, under the same names
// (tracker/history/record_store.h): History::Open("postgresql://host/db").
//
// It is not an index: a query reads the folder, which is quick up to hundreds
// of runs; history/index answers ListRuns for larger ones. Methods may be
// called from several threads and processes at once.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "base/file/file_system.h"
#include "tracker/history/history_files.h"
#include "tracker/history/record_store.h"
#include "tracker/proto/diagnosis.pb.h"
#include "tracker/proto/run.pb.h"
#include "tracker/proto/tombstone.pb.h"
#include "tracker/proto/triage.pb.h"
#include "tuning/proto/session.pb.h"

namespace optrail::tracker {

// "20261120T090807Z-1a2b3c4d5e6f": UTC start time and 48 random bits. Ids sort
// by time.
std::string NewRecordId(int64_t started_unix_ns);

// A run without its results.
struct RunInfo {
  std::string path;
  proto::Run header;  // every field but `results`
  int result_count = 0;

  const std::string& id() const { return header.run_id(); }
};

struct SessionInfo {
  std::string path;
  proto::Session header;  // every field but `trials` and `finalists`
  int trial_count = 0;

  const std::string& id() const { return header.session_id(); }
};

// Empty fields match everything.
struct RunFilter {
  std::string suite;
  std::string hardware_id;
  std::string branch;
  std::string commit_prefix;
  absl::optional<int64_t> started_from_unix_ns;
  absl::optional<int64_t> started_before_unix_ns;
};

struct RunList {
  std::vector<RunInfo> runs;  // in the order of a series: see SeriesOrder
  std::vector<BadFile> bad_files;
};

struct SessionList {
  std::vector<SessionInfo> sessions;  // by start time, then id
  std::vector<BadFile> bad_files;
};

struct LoadedRuns {
  std::vector<proto::Run> runs;  // in the order of a series
  std::vector<BadFile> bad_files;
};

struct LoadedTriage {
  std::vector<proto::TriageRecord> records;  // by time, then id
  std::vector<BadFile> bad_files;
};

struct LoadedDiagnoses {
  std::vector<proto::Diagnosis> diagnoses;  // by time, then id
  std::vector<BadFile> bad_files;
};

// True if `a` comes before `b` in a series: by first-parent position where both
// know it, then by record time, then by id. Runs whose position is unknown are
// placed by time among the others.
void SortInSeriesOrder(std::vector<const proto::Run*>& runs);

// Whether a record is dated more than a day after `now_unix_ns`. It is listed
// and judged at its commit, but never the latest.
bool IsInTheFuture(int64_t started_unix_ns, int64_t now_unix_ns);

struct LoadedTombstones {
  // By run id; REMOVED wins over THINNED.
  std::map<std::string, proto::TombstoneKind> by_run;
  std::vector<BadFile> bad_files;
};

struct VerifyReport {
  int64_t runs = 0;
  int64_t sessions = 0;
  int64_t triage_records = 0;
  int64_t diagnoses = 0;
  int64_t tombstone_files = 0;
  int64_t bytes = 0;
  std::vector<BadFile> bad_files;
  // Left behind by writers that were killed; harmless, never read.
  std::vector<std::string> leftover_temporary_files;
};

struct MergeOptions {
  // Take tombstones that bury runs which are here: the next pass of retention
  // removes or thins them.
  bool accept_removals = false;
};

// Tombstones of another history that were not copied, since runs that they bury
// are here.
struct HeldBack {
  std::string path;
  int64_t removes = 0;
  int64_t thins = 0;
  std::string example;  // a run id
};

struct MergeReport {
  int64_t copied = 0;
  int64_t already_there = 0;
  // Not copied because retention took them, or their samples, away.
  int64_t buried = 0;
  std::vector<HeldBack> held_back;
  std::vector<BadFile> bad_files;  // in the source; not copied
};

// NotFound, with what to do, if there is no such folder: for one that somebody
// named, where History::Open would see an empty history. A URL is asked when it
// is opened.
absl::Status CheckHistoryFolder(absl::string_view dir);

// "there are no runs in DIR yet; next: ...".
std::string EmptyHistoryText(absl::string_view dir,
                             absl::string_view what = "runs");

class History {
 public:
  // Opens the history in the folder `dir`, or in the database of a URL. A
  // folder that does not exist is an empty history; it is created by the first
  // record. Fails with FailedPrecondition if `dir` exists and is not a folder.
  static absl::StatusOr<History> Open(absl::string_view dir,
                                      FileSystem* fs = FileSystem::Real());

  const std::string& dir() const { return store_->dir(); }
  const RecordStore& store() const { return *store_; }

  // Records; on return with OK the record survives a power loss and reads back:
  // text that is no UTF-8 was replaced, and what no reader would take is
  // refused. The id must be one of NewRecordId's form. AlreadyExists if the id
  // is taken (the stored record is untouched); PermissionDenied for a read-only
  // history and ResourceExhausted for a full disk, with nothing left behind.
  absl::Status AppendRun(const proto::Run& run) const;
  absl::Status AppendSession(const proto::Session& session) const;
  absl::Status AppendTriage(const proto::TriageRecord& record) const;
  absl::Status AppendDiagnosis(const proto::Diagnosis& diagnosis) const;
  absl::Status AppendTombstones(const proto::Tombstones& tombstones) const;

  // For retention (tracker/history/retention.h): a tombstone comes first, so
  // that a merge does not undo it. Readers see the old record or the new one.
  absl::Status ReplaceRun(const proto::Run& run) const;
  absl::Status RemoveRun(absl::string_view run_id) const;

  // Whether there is a record in the place of this run, intact or not.
  absl::StatusOr<bool> HasRun(absl::string_view run_id) const;

  // The headers of the runs that match; results are skipped, not parsed.
  absl::StatusOr<RunList> ListRuns(const RunFilter& filter = {}) const;
  absl::StatusOr<SessionList> ListSessions() const;

  // The whole record. NotFound if there is none with this id; DataLoss, naming
  // file and reason, if it is damaged.
  absl::StatusOr<proto::Run> ReadRun(absl::string_view run_id) const;
  absl::StatusOr<proto::Session> ReadSession(
      absl::string_view session_id) const;
  // The run in the file at `path` below runs/. Its errors are the reasons of
  // LoadRuns: they do not name the file.
  absl::StatusOr<proto::Run> ReadRunFile(const std::string& path) const;

  // All runs that match, read by `threads` threads (0: one per core).
  absl::StatusOr<LoadedRuns> LoadRuns(const RunFilter& filter = {},
                                      int threads = 0) const;

  // Everything that was ever said, undone or not: see triage/triage.h.
  absl::StatusOr<LoadedTriage> LoadTriage() const;
  absl::StatusOr<LoadedDiagnoses> LoadDiagnoses() const;

  // Loads the tombstones of records that retention removed.
  absl::StatusOr<LoadedTombstones> LoadTombstones() const;

  // The runs that `selector` names:
  //   "latest", "latest~2"         the newest run by commit position, over the
  //                                runs that match; time orders runs of one
  //                                commit or without a position, where one
  //                                dated in the future is never the latest
  //                                (`notes`, if not null, says so)
  //   "20261120T090807Z-1a2b..."   a run id or a prefix of one
  //   "1a2b3c"                     a prefix of a run id's random part
  //   "d3d9933"                    a commit: all its runs
  // NotFound or, if several runs or commits share the prefix, InvalidArgument
  // that lists them. DataLoss, naming file, reason and next step, if the run
  // that is meant is damaged or, of "latest", may be: another is never taken in
  // its place. The result is never empty.
  absl::StatusOr<std::vector<RunInfo>> Resolve(
      absl::string_view selector, const RunFilter& filter = {},
      std::vector<std::string>* notes = nullptr) const;

  // Like Resolve, and an error unless it is exactly one run.
  absl::StatusOr<RunInfo> FindRun(
      absl::string_view selector, const RunFilter& filter = {},
      std::vector<std::string>* notes = nullptr) const;

  // Reads every byte of every file.
  absl::StatusOr<VerifyReport> Verify(int threads = 0) const;

  // Copies the records of `other` that this history lacks, and its tombstones,
  // but no run that a tombstone says was removed, and without asking no
  // tombstones that would take away what is here. Damaged files are reported
  // and stay where they are.
  absl::StatusOr<MergeReport> MergeFrom(const History& other,
                                        const MergeOptions& options = {}) const;

  // Lets ListRuns (and so Resolve and FindRun) ask `lister` instead of reading
  // every file: tracker/history/index. Where that fails, the files are read.
  using RunLister = std::function<absl::StatusOr<RunList>(const RunFilter&)>;
  void set_run_lister(RunLister lister) { run_lister_ = std::move(lister); }

  // What "latest" takes for now; 0, as it is at first: the clock.
  void set_now_unix_ns(int64_t now_unix_ns) { now_unix_ns_ = now_unix_ns; }

 private:
  explicit History(std::shared_ptr<const RecordStore> store)
      : store_(std::move(store)) {}

  std::shared_ptr<const RecordStore> store_;
  RunLister run_lister_;
  int64_t now_unix_ns_ = 0;
};

// Whether `filter` takes this run; sorts by SortInSeriesOrder. For indexes.
bool Matches(const RunFilter& filter, const proto::Run& run);
void SortInSeriesOrder(std::vector<RunInfo>& runs);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_HISTORY_H_
