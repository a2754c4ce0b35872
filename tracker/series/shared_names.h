#ifndef OPTRAIL_TRACKER_SERIES_SHARED_NAMES_H_
#define OPTRAIL_TRACKER_SERIES_SHARED_NAMES_H_

// Two programs that other tools measured may have a benchmark of one name. A
// series has no suite, so that its points are of both; the gate, which judges
// suite by suite, says something else.
//
//   const std::string note = SharedNamesText(
//       FindSharedNames(loaded.runs, loaded.series), HistoryFlag(options));
//   if (!note.empty()) PrintNotices({note});

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tracker/proto/run.pb.h"
#include "tracker/series/series.h"

namespace optrail::tracker {

struct SharedName {
  std::string benchmark;  // as people see it
  std::string hardware_id;
  std::vector<std::string> suites;  // sorted, at least two
};

// The benchmarks of other tools at whose newest point with several suites the
// median times of these differ. `runs` are read except for their results. An
// operator's name says what it computes: it is none of these.
std::vector<SharedName> FindSharedNames(const std::vector<proto::Run>& runs,
                                        const std::vector<Series>& series);

// A note of them and a command that looks at one suite alone, which ends with
// `history_flag`; "" if there are none.
std::string SharedNamesText(const std::vector<SharedName>& names,
                            absl::string_view history_flag);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_SERIES_SHARED_NAMES_H_
