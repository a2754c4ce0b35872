// Plants every convergence fault and counts what is found; and what is found in
// healthy sessions. Prints the table of docs/method/convergence.md.
//
//   bazel run //tracker/convergence/evaluation:convergence_evaluation --
//   --repeats=50

#include <algorithm>
#include <iostream>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_format.h"
#include "tracker/convergence/convergence.h"
#include "tracker/convergence/evaluation/simulate_sessions.h"
#include "tracker/convergence/findings.h"

ABSL_FLAG(int, repeats, 50, "times that each fault is planted");
ABSL_FLAG(int, healthy, 200, "healthy sessions");
ABSL_FLAG(int, healthy_repeats, 5, "times that healthy sessions are judged");
ABSL_FLAG(int, first_seed, 1, "of the simulations, which count up from it");
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
  optrail::tracker::Main();
  return 0;
}
