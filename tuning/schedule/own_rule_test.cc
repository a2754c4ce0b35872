// The rule of docs/method/schedules.md, "A rule of your own": what stands
// between the lines below stands there, too, and does what it says.

#include <fstream>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "tuning/schedule/rule.h"

// begin
namespace {

using namespace optrail::tuning;  // NOLINT: an example is short

// The innermost loop of a reduction, where it is short, becomes straight code.
class UnrollShortReductions : public SketchRule {
 public:
  std::string name() const override { return "unroll_short_reductions"; }

  void Apply(const Machine& machine, int stage, Decisions& decisions,
             Program& program) const override {
    const StagePlan& plan = program.plan(stage);
    if (!program.stage(stage).HasReduction() || plan.nests.empty()) return;
    const int last = static_cast<int>(plan.nests.size()) - 1;
    const auto axes = static_cast<int>(program.stage(stage).extents.size());
    std::string found;
    for (const Loop& loop : program.nest(stage, last)) {
      const bool reduction = loop.axis >= axes && loop.axis != Loop::kFused;
      if (reduction && loop.extent <= 16 && loop.kind == LoopKind::kSerial) {
        found = loop.name;
      }
    }
    if (found.empty()) return;
    if (decisions.Choose(DecisionName(stage, "short"), {0, 1}, 0) == 1) {
      program.Mark(stage, last, found, LoopKind::kUnrolled);
    }
  }
};

OPTRAIL_REGISTER_SKETCH_RULE(75, UnrollShortReductions)

}  // namespace
// end

namespace {

Algorithm Rows() {
  return *ParseAlgorithm(
      "input x 4 12 64\nstage y 4 64\ndef 0 0\ndef 1 1 12\n"
      "read input 0 0,1 1,0\n");
}

TEST(OwnRuleTest, AsksForItsDecisionAndChangesTheLoops) {
  Decisions usual = Decisions::Default();
  const auto without = Derive(Rows(), Machine(), usual);
  ASSERT_TRUE(without.ok()) << without.status().message();
  Trace trace = usual.trace();
  ASSERT_EQ(trace.count("s0_short"), 1);
  EXPECT_EQ(trace["s0_short"], 0);
  trace["s0_short"] = 1;
  Decisions chosen = Decisions::Replay(trace);
  const auto with = Derive(Rows(), Machine(), chosen);
  ASSERT_TRUE(with.ok()) << with.status().message();
  EXPECT_EQ(with->LoopsText().find("for r0"), std::string::npos);
  EXPECT_NE(with->LoopsText().find("unroll r0 < 12"), std::string::npos)
      << with->LoopsText();
}

std::string Contents(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
  std::stringstream contents;
  contents << in.rdbuf();
  return contents.str();
}

TEST(OwnRuleTest, StandsInThePageAsItIsTestedHere) {
  const std::string source = Contents("tuning/schedule/own_rule_test.cc");
  const size_t begin = source.find("// begin\n") + 9;
  const size_t end = source.find("// end\n");
  ASSERT_LT(begin, end);
  const std::string rule = source.substr(begin, end - begin);
  EXPECT_NE(Contents("docs/method/schedules.md").find(rule), std::string::npos);
}

}  // namespace
