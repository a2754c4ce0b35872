#ifndef OPTRAIL_TRACKER_HISTORY_INDEX_INDEX_WRITER_H_
#define OPTRAIL_TRACKER_HISTORY_INDEX_INDEX_WRITER_H_

// IndexWriter adds runs to the tables of an index, in SQLite and PostgreSQL
// alike:
//
//   Transaction transaction(db);
//   OPTRAIL_RETURN_IF_ERROR(transaction.Begin(db.begin_writing()));
//   OPTRAIL_ASSIGN_OR_RETURN(IndexWriter writer,
//                            IndexWriter::Create(db, nullptr));
//   OPTRAIL_RETURN_IF_ERROR(writer.AddRun("runs/2026/ID.pb", std::move(run)));
//   OPTRAIL_RETURN_IF_ERROR(writer.Finish());
//   OPTRAIL_RETURN_IF_ERROR(transaction.Commit());
//
// It lives within one transaction, or within several where IsCurrent is asked
// at the beginning of each: it remembers rows, and another process may have
// built the tables anew. Thread safety: that of its database.

#include <cstdint>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "tracker/history/sql.h"
#include "tracker/proto/run.pb.h"
#include "tracker/series/series.h"
#include "tracker/series/series_key.h"

namespace optrail::tracker {

class IndexWriter {
 public:
  // `count_runs` is run by Finish with a number of runs and the row of a series
  // that they say something of; null where the database counts by itself.
  static absl::StatusOr<IndexWriter> Create(Database& db,
                                            const char* count_runs);

  // False if the rows that it remembers are gone. A rebuild removes all, and in
  // PostgreSQL their numbers never come again: one of them tells for all.
  absl::StatusOr<bool> IsCurrent();
  // `path` is the run's place below the history.
  absl::Status AddRun(const std::string& path, proto::Run run);
  // Call it before the transaction is committed, where runs are counted.
  absl::Status Finish();

 private:
  IndexWriter() = default;

  template <typename Key, typename Add>
  absl::StatusOr<int64_t> RowOf(std::unordered_map<std::string, int64_t>& rows,
                                const std::string& text, const Key& key,
                                Statement& find, const Add& add);
  absl::StatusOr<int64_t> AddRunRow(const std::string& path,
                                    const proto::Run& header, int result_count);
  absl::StatusOr<int64_t> SeriesRow(const proto::BenchmarkKey& benchmark,
                                    const std::string& benchmark_bytes,
                                    const MetricInfo& metric,
                                    const proto::Run& run);
  absl::StatusOr<int64_t> SeriesRow(const SeriesKey& key);
  absl::StatusOr<int64_t> AttributesRow(const Observation& observation);
  absl::Status AddObservation(int64_t series, int64_t run, int ordinal,
                              const Observation& observation);

  absl::optional<Statement> add_run_, find_series_, has_series_, add_series_,
      count_runs_, find_attributes_, add_attributes_, add_observation_;
  std::unordered_map<std::string, int64_t> series_, attributes_;
  // The same rows by the parts of their keys: a text takes longer to make.
  std::unordered_map<std::string, int64_t> series_by_parts_;
  std::unordered_map<int64_t, int64_t> runs_of_series_;  // not counted yet
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_INDEX_INDEX_WRITER_H_
