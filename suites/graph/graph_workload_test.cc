#include "suites/graph/graph_workload.h"

#include <gtest/gtest.h>

#include "ops/device/cpu/device.h"
#include "suites/workload/workload.h"

namespace optrail::suites {
namespace {

using graph::Dims;

graph::TensorType F32(const Dims& dims) {
  return {optrail::proto::ELEMENT_F32, dims};
}

TEST(GraphWorkloadTest, EqualLayersAreCountedAndTheFileReadsBack) {
  graph::Graph model;
  int y = model.AddInput("x", F32({6, 16}));
  for (const int64_t size : {16, 16, 24}) {
    const int w = model.AddConstant("w", F32({16, size}),
                                    graph::Constant{nullptr, 1, 0.3});
    y = *model.AddNode("layer \"one\"", "matmul", {y, w});
    y = *model.AddNode("act", "tanh", {y});
  }
  model.outputs = {y};
  const auto device = ops::MakeCpuDevice(1);
  ASSERT_TRUE(device.ok()) << device.status();
  const auto workload = WorkloadOf(model, "My-Model.v2", **device, {});
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ(workload->name(), "my_model_v2");
  const auto read = ParseWorkload(WorkloadText(*workload), "w.textproto");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->layer_size(), 2);
  EXPECT_EQ(read->layer(0).operator_name(), "linear");
  EXPECT_EQ(read->layer(0).shape(), "m=6,n=16,k=16/f32");
  EXPECT_EQ(read->layer(0).count(), 2);
  EXPECT_EQ(read->layer(1).count(), 1);

  graph::RunnerOptions in_bf16;
  in_bf16.type = proto::ELEMENT_BF16;
  const auto narrow = WorkloadOf(model, "narrow", **device, in_bf16);
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  EXPECT_EQ(narrow->layer(0).shape(), "m=6,n=16,k=16/bf16");
}

TEST(GraphWorkloadTest, AGraphOfLoopsAloneHasNothingToTune) {
  graph::Graph model;
  const int x = model.AddInput("x", F32({6, 16}));
  model.outputs = {*model.AddNode("y", "tanh", {x})};
  const auto device = ops::MakeCpuDevice(1);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(WorkloadOf(model, "loops", **device, {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace optrail::suites
