#ifndef OPTRAIL_TRACKER_GATE_CANDIDATE_H_
#define OPTRAIL_TRACKER_GATE_CANDIDATE_H_

// The subject of a gate: a commit, a hardware and all of its suites.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const Candidate candidate,
//                            FindCandidate(history, policy, options));
//   if (!candidate.problem.empty()) ...  // there is nothing to judge
//
// Nothing older ever stands in for what is missing.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tracker/gate/gate.h"

namespace optrail::tracker {

// The runs of one suite on one hardware that are judged together.
struct CandidateGroup {
  std::vector<RunInfo> runs;  // never empty, in the order of a series
  // Measured otherwise than the last: what failed in them counts all the same.
  std::vector<RunInfo> other_settings;

  const proto::Run& last() const { return runs.back().header; }
};

struct Candidate {
  std::string name;                    // "commit 1a2b3c4d5e6f (HEAD)"
  bool is_commit = false;              // and so all of its suites, not one run
  std::vector<CandidateGroup> groups;  // by hardware, then suite
  std::vector<std::string> notes;
  // Why there is nothing to judge, and what to do; "" if there is something.
  std::string problem;
  GateReason reason = GateReason::kNoCandidate;  // of the problem
};

absl::StatusOr<Candidate> FindCandidate(const History& history,
                                        const Policy& policy,
                                        const GateOptions& options);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_GATE_CANDIDATE_H_
