#ifndef OPTRAIL_TRACKER_WATCH_FAILURES_H_
#define OPTRAIL_TRACKER_WATCH_FAILURES_H_

// Commits that could not be measured, remembered so that they are not tried
// again each time: a file of one JSON object a line, appended to.
//
//   OPTRAIL_ASSIGN_OR_RETURN(Failures failures,
//                            Failures::Read("failures.jsonl", commands));
//   if (failures.Of(commit) != nullptr) ...
//   OPTRAIL_RETURN_IF_ERROR(failures.Add(commit, "does not build"));
//
// A failure with other commands says nothing of these. A line that was cut
// off by a crash is ignored.

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace optrail::tracker {

class Failures {
 public:
  // `commands` is all that decides what is built and run. A file that is not
  // there is empty.
  static absl::StatusOr<Failures> Read(std::string path,
                                       const std::string& commands);

  // Returns the failure at `commit`, or null.
  const std::string* Of(const std::string& commit) const;

  absl::Status Add(const std::string& commit, const std::string& what);

 private:
  Failures(std::string path, std::string commands_id)
      : path_(std::move(path)), commands_id_(std::move(commands_id)) {}

  std::string path_;
  std::string commands_id_;
  std::map<std::string, std::string> by_commit_;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_WATCH_FAILURES_H_
