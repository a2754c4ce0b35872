#ifndef OPTRAIL_FLEET_EVALUATION_RUN_LOG_H_
#define OPTRAIL_FLEET_EVALUATION_RUN_LOG_H_

// For evaluations that take minutes: what happened when, in a file, and how
// far the run is, for people.
//
//   RunLog log(folder, std::cerr);
//   log.Note("killed slurmctld");       // "  12.34 s: killed slurmctld"
//   log.SayProgress(37, 200, "84 of 309 tasks done");
//   // faults: 37 of 200, 84 of 309 tasks done; about 6m left
//
// The file is `events` in the folder; without a folder nothing is kept. One
// thread at a time.

#include <fstream>
#include <ostream>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace optrail::fleet {

class RunLog {
 public:
  RunLog(const std::string& folder, std::ostream* progress);

  void Note(absl::string_view what);
  // Nothing without a stream.
  void SayProgress(int done, int all, absl::string_view state);

 private:
  const absl::Time begun_ = absl::Now();
  std::ofstream events_;
  std::ostream* const progress_;
};

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_EVALUATION_RUN_LOG_H_
