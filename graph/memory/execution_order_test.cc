#include "graph/memory/execution_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "base/random.h"

namespace optrail::graph {
namespace {

// A graph whose nodes each write one tensor and read some of those before.
Dataflow RandomFlow(int nodes, Rng& rng) {
  Dataflow flow;
  flow.tensor_bytes.push_back(1 + rng.UniformInt(20));  // an input
  for (int n = 0; n < nodes; ++n) {
    DataflowNode node;
    node.name = std::to_string(n);
    const int reads = static_cast<int>(rng.UniformInt(3));
    for (int i = 0; i < reads; ++i) {
      node.reads.push_back(static_cast<int>(rng.UniformInt(n + 1)));
    }
    node.writes = {n + 1};
    node.workspace_bytes = rng.UniformInt(5);
    flow.tensor_bytes.push_back(1 + rng.UniformInt(20));
    flow.nodes.push_back(node);
  }
  flow.outputs = {nodes};
  return flow;
}

bool CanRun(const Dataflow& flow, const std::vector<int>& order) {
  std::vector<bool> written(flow.tensor_bytes.size(), true);
  for (const DataflowNode& node : flow.nodes) {
    for (const int tensor : node.writes) written[tensor] = false;
  }
  for (const int n : order) {
    for (const int tensor : flow.nodes[n].reads) {
      if (!written[tensor]) return false;
    }
    for (const int tensor : flow.nodes[n].writes) written[tensor] = true;
  }
  return order.size() == flow.nodes.size();
}

// Over all orders, one after another.
int64_t LeastPeak(const Dataflow& flow) {
  std::vector<int> order(flow.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t least = std::numeric_limits<int64_t>::max();
  do {
    if (CanRun(flow, order)) least = std::min(least, PeakBytes(flow, order));
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

TEST(ExecutionOrderTest, FindsTheLeastPeakOfSmallGraphs) {
  Rng rng(1);
  int improved = 0;
  for (int round = 0; round < 60; ++round) {
    const Dataflow flow = RandomFlow(7, rng);
    ExecutionOrderOptions options;
    options.time_limit = absl::Minutes(5);
    const auto order = FindExecutionOrder(flow, options);
    ASSERT_TRUE(order.ok()) << order.status();
    EXPECT_TRUE(CanRun(flow, order->nodes));
    EXPECT_TRUE(order->is_minimal);
    EXPECT_EQ(order->peak_bytes, LeastPeak(flow)) << "round " << round;
    EXPECT_EQ(order->peak_bytes, PeakBytes(flow, order->nodes));
    improved += order->peak_bytes < order->peak_before_bytes;
  }
  EXPECT_GT(improved, 10);
}

TEST(ExecutionOrderTest, ItsPeakIsTheLowerBoundOfTheArena) {
  Rng rng(2);
  for (int round = 0; round < 20; ++round) {
    const Dataflow flow = RandomFlow(40, rng);
    ExecutionOrderOptions options;
    options.time_limit = absl::Milliseconds(20);
    const auto order = FindExecutionOrder(flow, options);
    ASSERT_TRUE(order.ok()) << order.status();
    EXPECT_TRUE(CanRun(flow, order->nodes));
    EXPECT_LE(order->peak_bytes, order->peak_before_bytes);
    MemoryPlanOptions plan_options;
    plan_options.time_limit = absl::ZeroDuration();
    const auto plan = Plan(LifetimesOf(flow, order->nodes), plan_options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->lower_bound_bytes, order->peak_bytes);
  }
}

// Branches that each expand and then reduce: run one after another they need
// one large tensor, side by side all of them.
TEST(ExecutionOrderTest, RunsBranchesOneAfterAnother) {
  constexpr int kBranches = 30;
  Dataflow flow;
  flow.tensor_bytes = {1};
  DataflowNode join;
  join.name = "join";
  for (int i = 0; i < kBranches; ++i) {
    flow.tensor_bytes.push_back(1000);
    flow.nodes.push_back({"expand", {0}, {1 + 2 * i}, 0});
    flow.tensor_bytes.push_back(1);
    join.reads.push_back(2 + 2 * i);
  }
  for (int i = 0; i < kBranches; ++i) {
    flow.nodes.push_back({"reduce", {1 + 2 * i}, {2 + 2 * i}, 0});
  }
  flow.tensor_bytes.push_back(1);
  join.writes = {1 + 2 * kBranches};
  flow.outputs = join.writes;
  flow.nodes.push_back(join);
  ExecutionOrderOptions options;
  options.time_limit = absl::Milliseconds(200);
  const auto order = FindExecutionOrder(flow, options);
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_GE(order->peak_before_bytes, 1000 * kBranches);
  EXPECT_LE(order->peak_bytes, 1000 + 2 * kBranches);
}

TEST(ExecutionOrderTest, NamesTheNodeThatIsWrong) {
  const auto error_of = [](const Dataflow& flow) {
    return std::string(FindExecutionOrder(flow).status().message());
  };
  EXPECT_EQ(error_of({{1, 1}, {{"a", {1}, {0}, 0}, {"b", {0}, {1}, 0}}, {}}),
            "node \"a\": is in a cycle, or behind one; expected none");
  EXPECT_EQ(error_of({{1}, {{"a", {}, {0}, 0}, {"b", {}, {0}, 0}}, {}}),
            "node \"b\": writes tensor 0, which \"a\" writes, too");
  EXPECT_EQ(error_of({{1}, {{"a", {1}, {0}, 0}}, {}}),
            "node \"a\": reads tensor 1, expected 0 to 0");
  EXPECT_EQ(error_of({{-1}, {}, {}}),
            "tensor 0: -1 bytes, expected at least 0, and at most 2^60 in all "
            "tensors");
  EXPECT_EQ(error_of({{1}, {}, {3}}), "output: tensor 3, expected 0 to 0");
}

TEST(ExecutionOrderTest, OrdersNothing) {
  const auto order = FindExecutionOrder({});
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_EQ(order->peak_bytes, 0);
  EXPECT_TRUE(order->is_minimal);
}

}  // namespace
}  // namespace optrail::graph
