#include "tracker/convergence/findings.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tracker/convergence/finders.h"
#include "tracker/convergence/space_evidence.h"
#include "tuning/session/stored_config.h"

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
  static constexpr absl::string_view kNames[] = {
      "does_not_converge",      "oscillates",
      "converged_too_early",    "most_trials_fail",
      "most_trials_contended",  "winners_curse",
      "time_exploded",          "loses_on_other_shapes",
      "prior_misleads",         "slower_to_converge",
      "converged_to_worse",     "tuner_worse",
      "tuner_worse_on_hardware"};
  static_assert(std::size(kNames) == std::size(kAllFindingKinds));
  return kNames[static_cast<size_t>(kind)];
}

absl::optional<FindingKind> ParseFindingKind(absl::string_view name) {
  for (FindingKind kind : kAllFindingKinds) {
    if (FindingKindName(kind) == name) return kind;
  }
  return absl::nullopt;
}

absl::string_view LeverName(Lever lever) {
  static constexpr absl::string_view kNames[] = {
      "knob_range", "constraint",  "strategy", "prior",
      "budget",     "measurement", "bisect"};
  static_assert(std::size(kNames) == static_cast<size_t>(Lever::kBisect) + 1);
  return kNames[static_cast<size_t>(lever)];
}

std::vector<Finding> FindFaults(absl::Span<const SessionAnalysis> sessions,
                                const FindingOptions& options) {
  std::vector<const SessionAnalysis*> in_time;
  for (const SessionAnalysis& session : sessions) {
    // One that proved a stored config searched nothing.
    if (session.header.strategy() == tuning::kStoredStrategy) continue;
    in_time.push_back(&session);
  }
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
