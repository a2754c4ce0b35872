#ifndef OPTRAIL_REPORTS_DIGEST_H_
#define OPTRAIL_REPORTS_DIGEST_H_

// A digest is what the page of a report shows of one series: its judgement and
// those of its points that are drawn or spoken of. The index keeps it, so that
// a report of ten million points reads those of the series that have changed.
//
//   const std::string bytes = EncodeDigest(key, limit, view, judgement, runs);
//   KeptDigest digest;
//   if (DecodeDigest(bytes, runs, &digest) && digest.key == key) Use(digest);
//
// The page is the same as from all points: the key is a hash of all that a
// digest rests on, so that nothing has to be told that it is stale. It lacks
// what pages do not show:
// - of a series: each process's spread, calibration, toolchains, settings;
// - of a judgement: `epoch_begins`, `baseline_begin`, `weights`, `last_worked`
//   and `first_failed`, which are empty. Gates and commands judge all points.
//
// Thread safety: the functions may be called from several threads. What is
// damaged, or of runs that are gone, is not decoded.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "reports/build_report_data.h"
#include "reports/report_data.h"
#include "reports/series_view.h"
#include "tracker/judge/judge.h"
#include "tracker/series/series.h"

namespace optrail::reports {

// The runs of an index, by their rows.
class DigestRuns {
 public:
  // Both must outlive this.
  DigestRuns(const tracker::OrderedRuns& runs, const std::vector<int64_t>& rows,
             const RunTables& tables);

  int64_t RowOf(const std::string& run_id) const { return rows_.at(run_id); }
  // Null if there is no such run.
  const proto::Run* Find(int64_t row) const;
  // The runs of a point; null if one is not there, or there is none.
  std::shared_ptr<const tracker::PointRuns> PointRunsOf(
      const std::vector<int64_t>& rows) const;
  // When these runs began, ascending; null if one is not there. Equal texts
  // give the same vector.
  std::shared_ptr<const std::vector<int64_t>> TimesOf(
      const std::string& first_runs) const;

  // Returns RunTables::CommitOf of the run in that row; -1 if there is none.
  int CommitOf(int64_t row) const;

 private:
  const tracker::OrderedRuns& runs_;
  absl::flat_hash_map<std::string, int64_t> rows_;  // by id
  absl::flat_hash_map<int64_t, int> places_;        // by row
  std::vector<int> commits_;                        // by place
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string,
                             std::shared_ptr<const std::vector<int64_t>>>
      times_;
};

// The points of a series that is moved stay where they are, also within a
// vector that grows.
static_assert(std::is_nothrow_move_constructible<tracker::Series>::value);

struct KeptDigest {
  uint64_t key = 0;
  // Without key and text, which the index has.
  tracker::Series series;
  // Its changes name no series until Settle. Their other pointers lead to the
  // points of `series`, which may be moved, but not copied. It lacks some
  // members: see above.
  tracker::Judgement judgement;
  JudgedSeries::Digested facts;

  // Sets the pointers of the judgement's changes; `all` is where the series has
  // come to lie.
  static void Settle(const tracker::Series& all, tracker::Judgement& judgement);
};

// Encodes a whole series; `view` has its judgement. `limit` is that of
// DrawnPoints.
std::string EncodeDigest(uint64_t key, int limit, const SeriesView& view,
                         const tracker::Judgement& judgement,
                         const DigestRuns& runs);

// False where nothing of use is in the bytes.
bool DecodeDigest(absl::string_view bytes, const DigestRuns& runs,
                  KeptDigest* digest);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_DIGEST_H_
