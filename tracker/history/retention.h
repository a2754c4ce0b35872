#ifndef OPTRAIL_TRACKER_HISTORY_RETENTION_H_
#define OPTRAIL_TRACKER_HISTORY_RETENTION_H_

// Retention keeps a history small: recent runs whole, older ones as the median
// of each process, and of those, if wished, only every k-th.
//
//   RetentionPolicy policy;
//   policy.keep_every = 4;
//   OPTRAIL_ASSIGN_OR_RETURN(const RetentionPlan plan,
//                            PlanRetention(history, policy, now_unix_ns));
//   OPTRAIL_RETURN_IF_ERROR(ApplyRetention(history, plan, now_unix_ns));
//
// Before anything changes, a tombstone of it is on the disk, so that merging
// with a copy does not bring back what was taken away. Killed at any moment,
// every run is there whole or thinned, or gone because the plan said so; the
// next pass completes what is left. The policy decides: what one of its rules
// keeps whole stays whatever a tombstone says, and a run that only a tombstone
// buries is removed once that is accepted. Runs that git or rsync brought back
// are part of the next plan. Points and their values stay as they are where a
// run is thinned; only the spread of samples within a process is forgotten.
//
// Sessions and what people said are never thinned.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tracker/history/history.h"
#include "tracker/proto/run.pb.h"

namespace optrail::tracker {

// A run that either rule keeps is kept whole.
struct RetentionPolicy {
  int keep_runs = 50;  // the newest of each suite, hardware and branch
  int keep_days = 90;

  // Of the others, those whose first-parent position is a multiple of it stay
  // (where that is unknown, as many at random); 1: all, as medians.
  int keep_every = 1;

  // Runs of these commits (prefixes of their hashes) are always kept whole: the
  // releases that gates compare with.
  std::vector<std::string> keep_commits;
  // Runs that are always kept whole: those that a certificate rests on.
  std::vector<std::string> keep_ids;

  // Also remove what tombstones (of another policy, or of somebody else) say
  // was removed and this policy would leave as medians.
  bool accept_removals = false;
};

// InvalidArgument, naming the field, for what makes no sense.
absl::Status ValidateRetention(const RetentionPolicy& policy);
// For people: "50 runs and 90 days whole, every 4th of the others as medians".
std::string DescribeRetention(const RetentionPolicy& policy);

struct RetentionPlan {
  std::vector<std::string> thin;    // run ids, oldest first
  std::vector<std::string> remove;  // run ids, oldest first
  int64_t kept_whole = 0;
  int64_t thinned_before = 0;
  int64_t buried_but_kept = 0;  // for want of accept_removals
  // Bytes of the files that change, as they are and as they will be.
  int64_t bytes_before = 0;
  int64_t bytes_after = 0;
  std::string policy;              // DescribeRetention
  std::vector<BadFile> bad_files;  // left as they are
};

// Changes nothing: a dry run.
absl::StatusOr<RetentionPlan> PlanRetention(const History& history,
                                            const RetentionPolicy& policy,
                                            int64_t now_unix_ns);

// A run that has gone since is no error.
absl::Status ApplyRetention(const History& history, const RetentionPlan& plan,
                            int64_t now_unix_ns);

// Replaces raw samples by the median of each process; false if there were none
// to replace.
bool ThinRun(proto::Run* run);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_RETENTION_H_
