#ifndef OPTRAIL_TRACKER_SERIES_SHARED_NAMES_H_
#define OPTRAIL_TRACKER_SERIES_SHARED_NAMES_H_

// Two programs that other tools measured may have a benchmark of one name. A
// series has no suite, so that its points are of both; the gate, which judges
// suite by suite, says something else.
//
//   const std::string note = SharedNamesText(loaded.runs, loaded.series);
//   if (!note.empty()) PrintNotices({note});

#include <string>
#include <vector>

#include "tracker/proto/run.pb.h"
#include "tracker/series/series.h"

namespace optrail::tracker {

// Names the benchmarks of other tools whose newest point that several suites
// have holds times that differ; "" if there is none. `runs` are read except for
// their results. An operator's name says what it computes: it is none of these.
std::string SharedNamesText(const std::vector<proto::Run>& runs,
                            const std::vector<Series>& series);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_SERIES_SHARED_NAMES_H_
