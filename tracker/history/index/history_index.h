#ifndef OPTRAIL_TRACKER_HISTORY_INDEX_HISTORY_INDEX_H_
#define OPTRAIL_TRACKER_HISTORY_INDEX_HISTORY_INDEX_H_

// HistoryIndex answers what a scan of the history's files answers, without
// reading them again: an SQLite file, <history>/index.sqlite, of the headers of
// runs and of what each says of each series (docs/method/history_scale.md).
//
//   OPTRAIL_ASSIGN_OR_RETURN(auto index, HistoryIndex::Open(history));
//   OPTRAIL_ASSIGN_OR_RETURN(const Series series, index->ReadSeries(
//       "matmul/cpu/m=512,n=512,k=512/f32/tuned/threads=1/hot|time|ns|"
//       "amd-epyc-zen4-2c|main"));
//
// It holds nothing that the files do not: it may be deleted at any time, is
// built again where it is missing, damaged or of another version, and takes in
// what has changed among the files each time it is opened or updated. Several
// processes may use it at once. Where the folder can't be written, an index
// that is up to date is read and any other is built in memory.
//
// A history in PostgreSQL has an index beside its records, which each recorded
// run brings up to date; then this class only asks it.
//
// It holds no samples: those are in the files. It is not thread-safe.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "base/file/file.h"
#include "tracker/history/history.h"
#include "tracker/history/sql.h"
#include "tracker/series/series.h"
#include "tracker/series/series_key.h"

namespace optrail::tracker {

// Empty fields match everything.
struct SeriesFilter {
  std::string pattern;  // RE2, somewhere in the canonical text
  std::string metric;
  std::string hardware_id;
  std::string branch;
};

// Which series, and of which runs.
struct SeriesQuery {
  RunFilter runs;
  std::function<bool(const SeriesKey&)> wanted;  // empty: all
};

struct LoadedSeries {
  std::vector<proto::Run> runs;  // their headers, in the order of a series
  std::vector<Series> series;    // sorted by text
  std::vector<BadFile> bad_files;
  std::vector<std::string> notices;  // as HistoryIndex::notices()
  // KeepFolds kept these, by the text of the series; absent where nothing can
  // be kept: some of a series' runs are left out, or there is no index.
  absl::optional<std::unordered_map<std::string, std::string>> folds;
};

// A series of a scan, without its points.
struct ListedSeries {
  int64_t row = 0;
  SeriesKey key;
  std::string text;
  std::string digest;  // as KeepDigests kept it; "" where it did not
};

// The series of one state of an index: all but the points, and the points of
// those that are asked for. So a report reads what it does not know yet, and
// never holds all of a history.
class SeriesScan {
 public:
  virtual ~SeriesScan() = default;

  // In the order of series, without their results.
  const OrderedRuns& runs() const { return *runs_; }
  // By place in runs(); a row is of one run for ever.
  const std::vector<int64_t>& run_rows() const { return run_rows_; }
  // By text. One may be without points.
  const std::vector<ListedSeries>& series() const { return series_; }
  virtual absl::StatusOr<std::unordered_map<std::string, std::string>>
  ReadFolds() const = 0;
  // Calls `take` with the place in series() and the whole series, on several
  // threads and in any order. `wanted` is ascending.
  virtual absl::Status Read(
      const std::vector<size_t>& wanted,
      const std::function<void(size_t, Series)>& take) const = 0;

 protected:
  absl::optional<OrderedRuns> runs_;
  std::vector<int64_t> run_rows_;
  std::vector<ListedSeries> series_;
};

// The report's verdict on a series and its changes, for dashboards.
struct KeptJudgement {
  std::string verdict;  // "slower"
  // A JSON list, whose fields the view `changes` names
  // (postgres/history_3.sql).
  std::string changes = "[]";
};

struct SeriesInfo {
  std::string text;  // CanonicalText(key)
  int64_t runs = 0;  // that say something of it
};

struct IndexUpdate {
  int64_t files = 0;  // in the history now
  int64_t added = 0;
  int64_t dropped = 0;  // vanished, or changed and read again
};

class HistoryIndex {
 public:
  // Opens the index of `history`, or makes it, and updates it.
  static absl::StatusOr<std::unique_ptr<HistoryIndex>> Open(
      const History& history);

  // Takes in what has changed among the files since.
  absl::StatusOr<IndexUpdate> Update();
  // Forgets everything and reads all files.
  absl::StatusOr<IndexUpdate> Rebuild();

  // Lists as History::ListRuns does.
  absl::StatusOr<RunList> ListRuns(const RunFilter& filter = {});
  // Sorted by text. InvalidArgument if the pattern is none.
  absl::StatusOr<std::vector<SeriesInfo>> ListSeries(
      const SeriesFilter& filter = {});
  // Returns the series that BuildSeries makes of all runs. NotFound if there is
  // none of that text.
  absl::StatusOr<Series> ReadSeries(absl::string_view text);

  // The series that the query wants, of the runs that its filter takes: what
  // BuildSeries makes of History::LoadRuns, field by field.
  absl::StatusOr<LoadedSeries> LoadSeries(const SeriesQuery& query = {});

  // Calls `use` within one transaction; what it returns is the answer.
  absl::Status Scan(const std::function<absl::Status(const SeriesScan&)>& use);

  // Keeps what was found in series, by text, for LoadedSeries::folds. Does
  // nothing where the index is none that lasts.
  absl::Status KeepFolds(const std::map<std::string, std::string>& folds);
  // The same of ListedSeries::digest.
  absl::Status KeepDigests(const std::map<std::string, std::string>& digests);

  // Replaces what is kept of all series, by text. Does nothing unless the index
  // is in PostgreSQL: dashboards read nothing else.
  absl::Status KeepJudgements(
      const std::map<std::string, KeptJudgement>& judgements);

  // Files that are no intact runs.
  absl::StatusOr<std::vector<BadFile>> BadFiles();

  // What a person should know: the index was damaged and built again, or is
  // held in memory because the folder can't be written.
  const std::vector<std::string>& notices() const { return notices_; }
  // The path of the database, "" if it is in memory.
  const std::string& path() const { return path_; }

 private:
  struct FileState;
  class SeriesReader;
  class IndexScan;
  // Runs in the order of series, and where each row of the index is among them.
  struct PlacedRuns {
    OrderedRuns runs;
    std::unordered_map<int64_t, int> places;  // kNoPlace: not among them
  };
  static constexpr int kNoPlace = -1;

  explicit HistoryIndex(const History& history) : history_(history) {}

  absl::Status OpenDatabase();
  absl::Status CheckFiles() const;
  absl::Status OpenForWriting();
  absl::Status OpenUnchanging();
  absl::Status OpenInMemory();
  absl::Status UseSchema();
  absl::Status ThrowAway();
  absl::StatusOr<std::vector<FileState>> FilesNow() const;
  absl::StatusOr<std::map<std::string, FileState>> FilesIndexed();
  absl::StatusOr<IndexUpdate> UpdateOnce();
  absl::StatusOr<bool> IsCurrent(const std::vector<FileState>& now);
  absl::Status LoadHeaders();
  absl::Status TakeHeader(const Statement& get);
  PlacedRuns Place(const RunFilter& filter) const;
  void PlaceRows(const std::vector<int64_t>& rows, PlacedRuns* placed) const;
  absl::StatusOr<PlacedRuns> PlaceRunsOf(int64_t series);

  absl::StatusOr<RunList> ListRunsOnce(const RunFilter& filter);
  absl::StatusOr<std::vector<SeriesInfo>> ListSeriesOnce(
      const SeriesFilter& filter);
  absl::StatusOr<Series> ReadSeriesOnce(absl::string_view text);
  absl::StatusOr<Series> ReadSeriesRow(int64_t row, SeriesKey key,
                                       std::string text);
  absl::StatusOr<LoadedSeries> LoadSeriesOnce(const SeriesQuery& query);
  absl::StatusOr<std::unordered_map<int64_t, std::string>> LoadKept(
      absl::string_view table);
  absl::Status Keep(absl::string_view table,
                    const std::map<std::string, std::string>& kept);

  // Calls `query`; if the index turns out to be damaged, builds it again and
  // calls it once more.
  template <typename Query>
  auto OrRebuild(const Query& query) -> decltype(query());

  History history_;
  std::string path_;
  bool read_only_ = false;
  bool kept_by_store_ = false;  // never made, updated or thrown away here
  std::shared_ptr<Database> db_;
  std::vector<std::string> notices_;

  struct Header {
    proto::Run run;
    std::string path;
    int result_count = 0;
  };
  // By row; rows are never used twice. Not all of them before LoadHeaders.
  std::map<int64_t, Header> headers_;
  absl::optional<PlacedRuns> all_runs_;  // of `headers_`, once asked for
  int series_read_ = 0;
};

// The index of the history, which is made once there are a hundred runs.
// FailedPrecondition where there are too few to be worth one.
absl::StatusOr<std::unique_ptr<HistoryIndex>> OpenWorthyIndex(
    const History& history);

// The same answer from the index, which is made once there are a hundred runs,
// or else from the files: they are what counts, and an index that can't be had
// is no error.
absl::StatusOr<LoadedSeries> LoadSeries(const History& history,
                                        const SeriesQuery& query = {});
// From the files alone.
absl::StatusOr<LoadedSeries> LoadSeriesFromFiles(const History& history,
                                                 const SeriesQuery& query = {});

// HistoryIndex::KeepFolds where there is an index. Reports no error: who may
// not write, or has no room, folds again next time.
void KeepFolds(const History& history,
               const std::map<std::string, std::string>& folds);

// The same of HistoryIndex::KeepJudgements.
void KeepJudgements(const History& history,
                    const std::map<std::string, KeptJudgement>& judgements);

// A history whose ListRuns, Resolve and FindRun ask the index, which is made
// once there are a hundred runs. An index that can't be had is no error: the
// files are read then.
absl::StatusOr<History> OpenIndexedHistory(absl::string_view dir);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_INDEX_HISTORY_INDEX_H_
