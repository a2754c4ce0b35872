#include "tuning/session/node_calibration.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

using ::testing::HasSubstr;

// A node whose default config and loops take so many times what the first one
// takes.
struct Simulated {
  double ratio = 1;
  double loops_ratio = 1;
  double noise = .005;  // relative, of a reading
};

std::vector<proto::MeasuringNode> Named(size_t count) {
  std::vector<proto::MeasuringNode> nodes(count);
  for (size_t i = 0; i < count; ++i) nodes[i].set_name(absl::StrCat("n", i));
  return nodes;
}

proto::Trial Reading(const Simulated& node, Rng& rng) {
  // Interference only slows down: one reading in ten takes some more.
  const double neighbour = rng.UniformReal() < .1 ? .03 * rng.UniformReal() : 0;
  const double normal = std::sqrt(-2 * std::log(1 - rng.UniformReal())) *
                        std::cos(2 * M_PI * rng.UniformReal());
  proto::Trial trial;
  trial.set_outcome(proto::OK);
  trial.set_time_ns(1e5 * node.ratio *
                    std::exp(node.noise * normal + neighbour));
  proto::Conditions& conditions =
      *trial.add_measurements()->mutable_conditions();
  for (const char* name : {"arithmetic", "l1"}) {
    proto::Calibration* loop = conditions.add_calibrations();
    loop->set_loop(name);
    loop->set_time_ns(1e3 * node.loops_ratio * (1 + .001 * rng.UniformReal()));
  }
  return trial;
}

NodeComparison Compare(const std::vector<Simulated>& nodes, uint64_t seed) {
  Rng rng(seed);
  NodeCalibration calibration(Named(nodes.size()));
  NodeComparison now;
  for (int round = 0; round < kMostCalibrations; ++round) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      calibration.Add(static_cast<int>(i), Reading(nodes[i], rng));
    }
    now = calibration.Compare();
    if (round + 1 >= kFewestCalibrations && !now.undecided) break;
  }
  return now;
}

TEST(NodeCalibrationTest, EqualNodesAreHardlyEverToldApart) {
  constexpr int kSessions = 1000;
  int sessions_with_one_told_apart = 0;
  for (int seed = 0; seed < kSessions; ++seed) {
    const NodeComparison now = Compare(std::vector<Simulated>(4), seed);
    int equal = 0;
    for (const auto& node : now.nodes) {
      equal += node.verdict() == proto::NODE_EQUAL;
    }
    sessions_with_one_told_apart += equal < 4;
  }
  // The confidence holds for all nodes together, and the tolerance helps.
  EXPECT_LE(sessions_with_one_told_apart, kSessions * (1 - kNodeConfidence));
}

TEST(NodeCalibrationTest, ASlowNodeIsToldApartAlsoWhereItIsTheFirst) {
  for (int seed = 0; seed < 100; ++seed) {
    const NodeComparison now = Compare({{1.06}, {}, {}}, seed);
    ASSERT_EQ(now.reference, 1);
    EXPECT_EQ(now.nodes[0].verdict(), proto::NODE_DIFFERS);
    EXPECT_NEAR(now.nodes[0].ratio(), 1.06, .03);
    EXPECT_EQ(now.nodes[2].verdict(), proto::NODE_EQUAL);
  }
}

TEST(NodeCalibrationTest, OfTwoThatDifferTheFirstIsTheReference) {
  const NodeComparison now = Compare({{}, {.9}}, 7);
  EXPECT_EQ(now.reference, 0);
  EXPECT_EQ(now.nodes[1].verdict(), proto::NODE_DIFFERS);
  EXPECT_THAT(NodeText(now.nodes[1]), HasSubstr("told apart and left out, 0."));
}

TEST(NodeCalibrationTest, TheLoopsExplainAnotherClockAndNothingElse) {
  const NodeComparison slow_clock = Compare({{}, {1.1, 1.1}}, 7);
  EXPECT_EQ(slow_clock.nodes[1].verdict(), proto::NODE_DIFFERS_AS_CALIBRATED);
  EXPECT_NEAR(slow_clock.nodes[1].explained_low(), 1.1, .01);
  EXPECT_THAT(NodeText(slow_clock.nodes[1]),
              HasSubstr("as its calibration explains"));
  // The clock explains a tenth, not a third.
  const NodeComparison more = Compare({{}, {1.33, 1.1}}, 7);
  EXPECT_EQ(more.nodes[1].verdict(), proto::NODE_DIFFERS);
}

TEST(NodeCalibrationTest, AGpuThatRunsNoLoopsIsExplainedByItsClock) {
  NodeCalibration calibration(Named(2));
  for (int round = 0; round < 5; ++round) {
    for (int node = 0; node < 2; ++node) {
      proto::Trial trial;
      trial.set_outcome(proto::OK);
      trial.set_time_ns((node == 0 ? 100 : 110) + .01 * round);
      proto::Conditions& conditions =
          *trial.add_measurements()->mutable_conditions();
      conditions.set_clock_hz(node == 0 ? 1'980'000'000 : 1'800'000'000);
      conditions.set_host("here");
      conditions.set_device_uuid(absl::StrCat("0", node));
      calibration.Add(node, trial);
    }
  }
  const NodeComparison now = calibration.Compare();
  EXPECT_EQ(now.nodes[1].verdict(), proto::NODE_DIFFERS_AS_CALIBRATED);
  EXPECT_EQ(now.nodes[1].device_uuid(), "01");
  EXPECT_EQ(now.nodes[1].host(), "here");
}

TEST(NodeCalibrationTest, NoisyNodesAreReadLongerAndNotToldApart) {
  Rng rng(3);
  NodeCalibration calibration(Named(2));
  const Simulated noisy{1, 1, .1};
  for (int round = 0; round < kFewestCalibrations; ++round) {
    for (int node = 0; node < 2; ++node) {
      calibration.Add(node, Reading(noisy, rng));
    }
  }
  const NodeComparison now = calibration.Compare();
  EXPECT_TRUE(now.undecided);
  EXPECT_EQ(now.nodes[1].verdict(), proto::NODE_EQUAL);
  EXPECT_GT(now.nodes[1].ratio_high(), 1 + kNodeTolerance);
}

TEST(NodeCalibrationTest, AFailureIsNamedAndDisturbedReadingsCountForNothing) {
  Rng rng(3);
  NodeCalibration calibration(Named(3));
  for (int round = 0; round < kFewestCalibrations; ++round) {
    proto::Trial crash;
    crash.set_outcome(proto::CRASHED);
    crash.set_detail("SIGBUS");
    if (!calibration.IsLeftOut(0)) calibration.Add(0, crash);
    calibration.Add(1, Reading({}, rng));
    proto::Trial disturbed = Reading({}, rng);
    disturbed.set_outcome(proto::CONTENDED);
    calibration.Add(2, disturbed);
  }
  const NodeComparison now = calibration.Compare();
  EXPECT_EQ(now.reference, 1);
  EXPECT_EQ(now.nodes[0].verdict(), proto::NODE_FAILED);
  EXPECT_THAT(NodeText(now.nodes[0]),
              HasSubstr("left out: the default config: CRASHED: SIGBUS"));
  EXPECT_EQ(now.nodes[2].verdict(), proto::NODE_FAILED);
  EXPECT_THAT(NodeText(now.nodes[2]), HasSubstr("too busy"));
  EXPECT_TRUE(now.undecided);
}

// A record lists nodes of all sittings, and a single worker has no verdict.
TEST(NodeCalibrationTest, ANodeOfAnEarlierSittingIsToldAsSuch) {
  proto::MeasuringNode node;
  node.set_host("gpu7");
  node.set_searches(true);
  EXPECT_EQ(NodeText(node), "node (gpu7); an earlier sitting searched there");
  node.set_proves(true);
  EXPECT_EQ(NodeText(node), "node (gpu7); searches, ranks and proves");
}

TEST(NodeCalibrationTest, ALostNodeSaysWhyInOldSessionsToo) {
  proto::MeasuringNode node;
  node.set_host("gpu7");
  node.set_searches(true);
  node.set_verdict(proto::NODE_EQUAL);
  EXPECT_EQ(LostBecause(node), "");
  node.set_detail("the cable is out");
  EXPECT_EQ(LostBecause(node), "the cable is out");
  const std::string old_text = NodeText(node);
  EXPECT_THAT(
      old_text,
      HasSubstr("; searches; lost during the search: the cable is out"));
  node.clear_detail();
  node.set_lost_because("the cable is out");
  EXPECT_EQ(NodeText(node), old_text);
  // The detail of another verdict says why it was left out.
  node.set_verdict(proto::NODE_FAILED);
  node.clear_lost_because();
  node.set_detail("SIGBUS");
  EXPECT_EQ(LostBecause(node), "");
}

TEST(NodeCalibrationTest, WithoutReadingsThereIsNoReference) {
  NodeCalibration calibration(Named(2));
  calibration.LeaveOut(0, proto::NODE_UNREACHED, "nobody answers");
  const NodeComparison now = calibration.Compare();
  EXPECT_EQ(now.reference, -1);
  EXPECT_EQ(now.nodes[0].verdict(), proto::NODE_UNREACHED);
}

}  // namespace
}  // namespace optrail::tuning
