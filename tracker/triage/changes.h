#ifndef OPTRAIL_TRACKER_TRIAGE_CHANGES_H_
#define OPTRAIL_TRACKER_TRIAGE_CHANGES_H_

// The change points of every series, by the online fold (detect/online.h), each
// with what people have said about it.
//
//   const std::vector<Series> series = BuildSeries(loaded.runs);
//   for (const Change& change : FindChanges(series, book, {})) ...

#include <vector>

#include "tracker/detect/detect.h"
#include "tracker/series/series.h"
#include "tracker/triage/triage.h"

namespace optrail::tracker {

struct Change {
  const Series* series = nullptr;
  ChangePoint change;
  bool confirmed = false;  // else provisional: it may be withdrawn
  // How much worse (+) or better (-), as Row::worse_by.
  double worse_by = 0;
  Opinion opinion;

  // The first point of the new level, and the last one before it that was
  // measured: the commit is after `before` and not after `after`.
  const Point& after() const { return series->points[change.index]; }
  const Point* before = nullptr;
};

// New ones first, then by how much worse they are. `threads` 0: one per core.
// `series` must outlive the result.
std::vector<Change> FindChanges(const std::vector<Series>& series,
                                const TriageBook& book, int threads = 0);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_TRIAGE_CHANGES_H_
