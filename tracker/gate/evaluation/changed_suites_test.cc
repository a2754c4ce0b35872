// The rates that changed_suites_main prints for 5,000 gates, on 100 and with
// room for chance.

#include "tracker/gate/evaluation/changed_suites.h"

#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

TEST(ChangedSuites, APartOfASuiteIsNotTakenForTheMachine) {
  const SuiteFigures figures = GateChangedSuites(/*gates=*/100, /*seed=*/7);
  const SuiteCounts& all = figures[0];
  EXPECT_LE(all.missed, 3);
  EXPECT_LE(all.false_red, 4);
  EXPECT_GT(all.green, 10);
  EXPECT_GT(all.red, 30);
  const SuiteCounts& hardest = figures.back();
  EXPECT_LE(hardest.inconclusive, hardest.gates / 2);
}

TEST(ChangedSuites, PairsAreConclusive) {
  const SuiteCounts& pairs = GateChangedSuites(/*gates=*/60, /*seed=*/8)[1];
  EXPECT_LE(pairs.missed, 1);
  EXPECT_LE(pairs.false_red, 1);
  EXPECT_LE(pairs.inconclusive, pairs.gates / 10);
}

}  // namespace
}  // namespace optrail::tracker
