#include "tracker/convergence/findings.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tracker/convergence/history_findings.h"
#include "tracker/convergence/session_findings.h"
#include "tracker/convergence/space_evidence.h"

namespace optrail::tracker {
namespace {

// A session that sat on a plateau also ended worse than others; the plateau
// says more.
void DropExplained(std::vector<Finding>& findings) {
  std::set<std::string> too_early;
  for (const Finding& finding : findings) {
    if (finding.kind != FindingKind::kConvergedTooEarly) continue;
    too_early.insert(finding.session_ids.begin(), finding.session_ids.end());
  }
  findings.erase(
      std::remove_if(findings.begin(), findings.end(),
                     [&](const Finding& finding) {
                       return finding.kind == FindingKind::kConvergedToWorse &&
                              too_early.count(finding.session_ids[0]) > 0;
                     }),
      findings.end());
}

// Findings of the same kind and task, of which the newest keeps its words.
std::vector<Finding> Merge(std::vector<Finding> findings) {
  std::map<std::tuple<FindingKind, std::string, std::string>, Finding> merged;
  for (Finding& finding : findings) {
    // Findings about several tasks stay apart.
    const std::string apart =
        finding.task.empty() ? finding.evidence.front() : "";
    const auto key = std::make_tuple(finding.kind, finding.task, apart);
    const auto [place, is_new] = merged.insert({key, finding});
    if (is_new) continue;
    std::vector<std::string> ids = place->second.session_ids;
    for (std::string& id : finding.session_ids) {
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) {
        ids.push_back(std::move(id));
      }
    }
    std::sort(ids.begin(), ids.end());
    place->second.evidence = std::move(finding.evidence);
    place->second.remedies = std::move(finding.remedies);
    place->second.session_ids = std::move(ids);
  }
  std::vector<Finding> result;
  for (auto& [unused, finding] : merged) {
    if (finding.session_ids.size() > 1 && !finding.task.empty()) {
      finding.evidence.push_back(
          absl::StrCat("in ", finding.session_ids.size(), " sessions"));
    }
    result.push_back(std::move(finding));
  }
  return result;
}

}  // namespace

absl::string_view FindingKindName(FindingKind kind) {
  switch (kind) {
    case FindingKind::kDoesNotConverge:
      return "does_not_converge";
    case FindingKind::kOscillates:
      return "oscillates";
    case FindingKind::kConvergedTooEarly:
      return "converged_too_early";
    case FindingKind::kMostTrialsFail:
      return "most_trials_fail";
    case FindingKind::kMostTrialsContended:
      return "most_trials_contended";
    case FindingKind::kWinnersCurse:
      return "winners_curse";
    case FindingKind::kTimeExploded:
      return "time_exploded";
    case FindingKind::kLosesOnOtherShapes:
      return "loses_on_other_shapes";
    case FindingKind::kPriorMisleads:
      return "prior_misleads";
    case FindingKind::kSlowerToConverge:
      return "slower_to_converge";
    case FindingKind::kConvergedToWorse:
      return "converged_to_worse";
    case FindingKind::kTunerWorse:
      return "tuner_worse";
    case FindingKind::kTunerWorseOnHardware:
      return "tuner_worse_on_hardware";
  }
  return "unknown";
}

absl::optional<FindingKind> ParseFindingKind(absl::string_view name) {
  for (FindingKind kind : kAllFindingKinds) {
    if (FindingKindName(kind) == name) return kind;
  }
  return absl::nullopt;
}

absl::string_view LeverName(Lever lever) {
  switch (lever) {
    case Lever::kKnobRange:
      return "knob_range";
    case Lever::kConstraint:
      return "constraint";
    case Lever::kStrategy:
      return "strategy";
    case Lever::kPrior:
      return "prior";
    case Lever::kBudget:
      return "budget";
    case Lever::kMeasurement:
      return "measurement";
    case Lever::kBisect:
      return "bisect";
  }
  return "unknown";
}

std::vector<Finding> FindFaults(absl::Span<const SessionAnalysis> sessions,
                                const FindingOptions& options) {
  std::vector<const SessionAnalysis*> in_time;
  for (const SessionAnalysis& session : sessions) in_time.push_back(&session);
  std::stable_sort(
      in_time.begin(), in_time.end(),
      [](const SessionAnalysis* a, const SessionAnalysis* b) {
        return std::make_tuple(a->header.started_unix_ns(), a->id()) <
               std::make_tuple(b->header.started_unix_ns(), b->id());
      });
  std::vector<SessionWithSpace> with_spaces;
  std::vector<Finding> findings;
  for (const SessionAnalysis* session : in_time) {
    with_spaces.push_back({session, SpaceOf(*session)});
    for (Finding& finding :
         FindSessionFaults(*session, with_spaces.back().space.get(), options)) {
      findings.push_back(std::move(finding));
    }
  }
  for (Finding& finding : FindHistoryFaults(with_spaces, options)) {
    findings.push_back(std::move(finding));
  }
  DropExplained(findings);
  return Merge(std::move(findings));
}

}  // namespace optrail::tracker
