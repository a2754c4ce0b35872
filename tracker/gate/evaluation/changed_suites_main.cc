// Prints how often the gate takes a part of a suite for the machine, or the
// machine for a part of the suite (docs/method/gating.md).
//
//   bazel run //tracker/gate/evaluation:changed_suites_main -- --gates=5000

#include <iostream>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_format.h"
#include "base/text/table.h"
#include "tracker/gate/evaluation/changed_suites.h"

ABSL_FLAG(int, gates, 5000, "how many gates to simulate");
ABSL_FLAG(uint64_t, seed, 1, "");

namespace optrail::tracker {
namespace {

std::string Percent(int part, int whole) {
  return whole == 0 ? "-" : absl::StrFormat("%.2f%%", 100. * part / whole);
}

int Main() {
  Table table({{"gates of suites of which a part changed"},
               {"gates", Align::kRight},
               {"green with 8% or more slower", Align::kRight},
               {"red for an unchanged benchmark", Align::kRight},
               {"inconclusive", Align::kRight},
               {"exit 0 if nothing changed", Align::kRight}});
  for (const SuiteCounts& counts : GateChangedSuites(
           absl::GetFlag(FLAGS_gates), absl::GetFlag(FLAGS_seed))) {
    table.AddRow({counts.name, Cell::Integer(counts.gates),
                  Percent(counts.missed, counts.gates),
                  Percent(counts.false_red, counts.gates),
                  Percent(counts.inconclusive, counts.gates),
                  Percent(counts.unchanged_green, counts.unchanged)});
  }
  std::cout << table.ToMarkdown();
  return 0;
}

}  // namespace
}  // namespace optrail::tracker

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return optrail::tracker::Main();
}
