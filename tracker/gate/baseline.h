#ifndef OPTRAIL_TRACKER_GATE_BASELINE_H_
#define OPTRAIL_TRACKER_GATE_BASELINE_H_

// Which runs a candidate is judged by.
//
//   const BaselineFinder finder(policy, git, runs, candidates);
//   OPTRAIL_ASSIGN_OR_RETURN(ResolvedBaseline found,
//                            finder.Find(baseline, history, filter));
//
// What it is given must outlive it. Not thread-safe.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "tracker/gate/gate.h"

namespace optrail::tracker {

using ResolvedBaseline = GateReport::ResolvedBaseline;

// Whether the policy takes two runs for measured in the same way.
bool MeasuredAlike(const Policy& policy, const proto::Run& a,
                   const proto::Run& b);

// Whether a run may be the past of the candidate. Positions along first parents
// compare within a branch only; across branches git knows what is an ancestor,
// and without it the time of recording has to do.
class Past {
 public:
  Past(const GitLookup& git, const proto::Run& candidate)
      : git_(git), candidate_(candidate) {}

  bool Has(const proto::Run& run) const;

 private:
  // Without it no commit is known to be an ancestor, and none is looked up.
  bool GitKnowsTheCandidate() const;

  const GitLookup& git_;
  const proto::Run& candidate_;
  mutable absl::optional<bool> git_knows_the_candidate_;
  // By commit; absent where git does not know.
  mutable std::map<std::string, absl::optional<bool>> ancestors_;
};

class BaselineFinder {
 public:
  // `runs` of the candidates' hardware, and suite but for Suites(), in series
  // order.
  BaselineFinder(const Policy& policy, const GitLookup& git,
                 const std::vector<RunInfo>& runs,
                 const std::vector<RunInfo>& candidates);

  const std::vector<RunInfo>& runs() const { return runs_; }

  absl::StatusOr<ResolvedBaseline> Find(const proto::Baseline& baseline,
                                        const History& history,
                                        const RunFilter& filter) const;

  // The whole runs of a baseline that was found. The last runs of a window may
  // have measured a part of the suite (`--benchmark_filter`): of a benchmark of
  // `candidates` that they lack, runs before them are added, with nothing else
  // in them. Without these it would be new, and never worse.
  absl::StatusOr<std::vector<proto::Run>> Read(
      const proto::Baseline& baseline, const History& history,
      const std::vector<proto::Run>& candidates, ResolvedBaseline* found) const;

  // The suites that a commit is expected to have: those of the baseline's
  // commit, or of at least half of the last commits of its window.
  std::set<std::string> Suites(const proto::Baseline& baseline) const;

 private:
  // What a run is to a window.
  enum class Standing {
    kCandidate,
    kOtherBranch,
    kOtherToolchain,
    kDirty,
    kNoAncestor,
    kOtherSettings,
    kOfWindow,
  };

  absl::Status CheckIsKnown(const proto::Baseline& baseline,
                            const History& history) const;
  absl::StatusOr<ResolvedBaseline> FindRuns(const proto::Baseline& baseline,
                                            const History& history,
                                            const RunFilter& filter) const;
  absl::StatusOr<ResolvedBaseline> FindRun(const std::string& run,
                                           const History& history,
                                           const RunFilter& filter,
                                           ResolvedBaseline found) const;
  // The commit that a baseline names; nullopt for a window or a run.
  absl::StatusOr<absl::optional<std::string>> CommitOf(
      const proto::Baseline& baseline) const;
  absl::StatusOr<ResolvedBaseline> FindCommit(const std::string& commit,
                                              ResolvedBaseline found) const;
  void FindWindow(const proto::Baseline::Window& window,
                  ResolvedBaseline* found) const;
  std::string WindowProblem(const proto::Baseline::Window& window, size_t runs,
                            int needed,
                            const std::map<Standing, int>& left_out) const;
  Standing StandingOf(const proto::Baseline::Window& window,
                      const RunInfo& run) const;
  // The runs that a full window left out: those before its first, newest first.
  std::vector<RunInfo> Before(const proto::Baseline::Window& window,
                              const ResolvedBaseline& found) const;
  absl::Status FillWindow(const proto::Baseline::Window& window,
                          const History& history,
                          const std::vector<proto::Run>& candidates,
                          ResolvedBaseline* found,
                          std::vector<proto::Run>* whole) const;
  // Says that runs were measured differently; leaves them out where the policy
  // forbids to compare.
  void LookAtSettings(ResolvedBaseline* found) const;
  void AddUnlessCandidate(const RunInfo& run, ResolvedBaseline* found) const;

  const Policy& policy_;
  const GitLookup& git_;
  const std::vector<RunInfo>& runs_;
  const proto::Run& candidate_;
  const Past past_;
  const std::set<std::string> candidate_ids_;
};

absl::StatusOr<std::vector<proto::Run>> ReadAll(
    const History& history, const std::vector<RunInfo>& runs);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_GATE_BASELINE_H_
