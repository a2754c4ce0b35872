// Plants every convergence fault and counts what is found; and what is found in
// healthy sessions. Prints the table of docs/method/convergence.md.
//
//   bazel run //tracker/convergence/evaluation:convergence_evaluation --
//   --repeats=50
//
// With --history, really recorded sessions are judged whose trials are in a
// random order, with their configs dealt out at random: readings and outcomes
// are real, and nothing that is found about their order or their knobs is true.

#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "tracker/convergence/convergence.h"
#include "tracker/convergence/evaluation/simulate_sessions.h"
#include "tracker/convergence/findings.h"
#include "tracker/history/history.h"

ABSL_FLAG(int, repeats, 50, "times that each fault is planted");
ABSL_FLAG(int, healthy, 200, "healthy sessions");
ABSL_FLAG(int, healthy_repeats, 5, "times that healthy sessions are judged");
ABSL_FLAG(int, first_seed, 1, "of the simulations, which count up from it");
ABSL_FLAG(std::string, history, "", "folder of recorded sessions to shuffle");
ABSL_FLAG(bool, verbose, false, "print other findings beside planted faults");

namespace optrail::tracker {
namespace {

std::vector<Finding> FindIn(const std::vector<proto::Session>& sessions) {
  std::vector<SessionAnalysis> analyses;
  for (const proto::Session& session : sessions) {
    analyses.push_back(AnalyzeSession(session));
  }
  return FindFaults(analyses);
}

// The session's own trials, in a random order and with each other's configs.
void Shuffle(Rng& rng, proto::Session* session) {
  std::vector<proto::Trial> trials(session->trials().begin(),
                                   session->trials().end());
  std::vector<proto::Trial> own(
      trials.begin() + session->warm_start_trial_count(), trials.end());
  rng.Shuffle(own);
  std::vector<proto::Config> configs;
  for (const proto::Trial& trial : own) configs.push_back(trial.config());
  rng.Shuffle(configs);
  for (size_t i = 0; i < own.size(); ++i) {
    *own[i].mutable_config() = configs[i];
    *session->mutable_trials(session->warm_start_trial_count() +
                             static_cast<int>(i)) = own[i];
  }
}

// Returns whether the finding is about what Shuffle takes away.
bool IsFalse(const Finding& finding) {
  if (finding.kind == FindingKind::kMostTrialsFail) {
    // The trials did fail; a rule over knobs is false.
    return std::any_of(finding.evidence.begin(), finding.evidence.end(),
                       [](const std::string& line) {
                         return absl::StrContains(line, " holds for ");
                       });
  }
  return finding.kind == FindingKind::kDoesNotConverge;
}

absl::Status JudgeShuffled(const std::string& folder) {
  OPTRAIL_ASSIGN_OR_RETURN(const History history, History::Open(folder));
  OPTRAIL_ASSIGN_OR_RETURN(const SessionList list, history.ListSessions());
  std::vector<proto::Session> sessions;
  for (const SessionInfo& info : list.sessions) {
    OPTRAIL_ASSIGN_OR_RETURN(sessions.emplace_back(),
                             history.ReadSession(info.id()));
  }
  const int repeats = absl::GetFlag(FLAGS_repeats);
  std::map<FindingKind, int> counts;
  Rng rng(static_cast<uint64_t>(absl::GetFlag(FLAGS_first_seed)));
  for (int i = 0; i < repeats; ++i) {
    std::vector<proto::Session> shuffled = sessions;
    for (proto::Session& session : shuffled) Shuffle(rng, &session);
    for (const Finding& finding : FindIn(shuffled)) {
      if (IsFalse(finding)) ++counts[finding.kind];
    }
  }
  for (const FindingKind kind :
       {FindingKind::kDoesNotConverge, FindingKind::kMostTrialsFail}) {
    std::cout << absl::StrFormat(
        "%-20s %d false findings in %d times %d shuffled sessions\n",
        FindingKindName(kind), counts[kind], repeats, sessions.size());
  }
  return absl::OkStatus();
}

void Main() {
  const int repeats = absl::GetFlag(FLAGS_repeats);
  const int first_seed = absl::GetFlag(FLAGS_first_seed);
  std::cout
      << "planted                  found  with the remedy  other findings\n";
  for (const FindingKind kind : kAllFindingKinds) {
    int found = 0, remedied = 0, others = 0;
    for (int seed = first_seed; seed < first_seed + repeats; ++seed) {
      bool is_found = false, is_remedied = false;
      for (const Finding& finding : FindIn(SimulateFault(kind, seed))) {
        if (finding.kind != kind) {
          ++others;
          if (absl::GetFlag(FLAGS_verbose)) {
            std::cout << "    " << FindingKindName(finding.kind) << ": "
                      << finding.evidence.front() << "\n";
          }
          continue;
        }
        is_found = true;
        is_remedied =
            is_remedied ||
            std::any_of(finding.remedies.begin(), finding.remedies.end(),
                        [&](const Remedy& remedy) {
                          return remedy.lever == RemedyOf(kind);
                        });
      }
      found += is_found;
      remedied += is_remedied;
    }
    std::cout << absl::StrFormat("%-24s %2d/%d  %12d/%d  %14d\n",
                                 FindingKindName(kind), found, repeats,
                                 remedied, repeats, others);
  }
  const int healthy = absl::GetFlag(FLAGS_healthy);
  const int healthy_repeats = absl::GetFlag(FLAGS_healthy_repeats);
  for (int seed = first_seed; seed < first_seed + healthy_repeats; ++seed) {
    const std::vector<Finding> findings =
        FindIn(SimulateHealthy(healthy, seed));
    std::cout << absl::StrFormat("%d healthy sessions, seed %d: %d findings\n",
                                 healthy, seed, findings.size());
    for (const Finding& finding : findings) {
      std::cout << "    " << FindingKindName(finding.kind) << ": "
                << finding.evidence.front() << "\n";
    }
  }
}

}  // namespace
}  // namespace optrail::tracker

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Measures the findings of convergence.");
  absl::ParseCommandLine(argc, argv);
  if (const std::string folder = absl::GetFlag(FLAGS_history);
      !folder.empty()) {
    const absl::Status judged = optrail::tracker::JudgeShuffled(folder);
    if (!judged.ok()) std::cerr << judged << "\n";
    return judged.ok() ? 0 : 2;
  }
  optrail::tracker::Main();
  return 0;
}
