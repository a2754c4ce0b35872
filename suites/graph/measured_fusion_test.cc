#include "suites/graph/measured_fusion.h"

#include <gtest/gtest.h>

#include "base/file/file.h"
#include "graph/fusion/decisions.h"
#include "ops/device/cpu/device.h"

namespace optrail::suites {
namespace {

using graph::Dims;

graph::TensorType F32(const Dims& dims) {
  return {optrail::proto::ELEMENT_F32, dims};
}

// Two layers of one size and one of another.
graph::Graph Layers() {
  graph::Graph layers;
  int y = layers.AddInput("x", F32({6, 16}));
  uint64_t seed = 0;
  for (const int64_t size : {16, 16, 24}) {
    const int w = layers.AddConstant("w", F32({16, size}),
                                     graph::Constant{nullptr, ++seed, 0.3});
    const int b = layers.AddConstant("b", F32({size}),
                                     graph::Constant{nullptr, ++seed, 0.3});
    y = *layers.AddNode("product", "matmul", {y, w});
    y = *layers.AddNode("sum", "add", {y, b});
  }
  layers.outputs = {y};
  return layers;
}

class MeasuredFusionTest : public testing::Test {
 protected:
  MeasuredFusionTest()
      : device_(*ops::MakeCpuDevice(1)),
        folder_(JoinPath(testing::TempDir(), "fusion")) {}

  int Linears(MeasuredFusion& fusion) {
    graph::RunnerOptions options;
    options.choose = fusion.chooser();
    const auto runner = graph::Runner::Create(Layers(), *device_, options);
    EXPECT_TRUE(runner.ok()) << runner.status();
    int applied = 0;
    for (const graph::FusionDecision& decision : (*runner)->fusion()) {
      applied += decision.why_not.empty() ? 1 : 0;
      if (!decision.why_not.empty()) why_not_ = decision.why_not;
    }
    return applied;
  }

  const std::unique_ptr<ops::CpuDevice> device_;
  const std::string folder_;
  std::string why_not_;
};

TEST_F(MeasuredFusionTest, MeasuresEqualSitesOnceAndRemembersThem) {
  auto first = MeasuredFusion::Create(folder_, *device_, {});
  ASSERT_TRUE(first.ok()) << first.status();
  Linears(**first);
  ASSERT_TRUE((*first)->Save().ok());
  auto decisions =
      graph::FusionDecisions::Load(folder_, device_->hardware().id());
  ASSERT_TRUE(decisions.ok()) << decisions.status();
  ASSERT_EQ(decisions->all().decisions_size(), 2);
  for (const auto& decision : decisions->all().decisions()) {
    EXPECT_EQ(decision.rule(), "matmul + bias");
    EXPECT_EQ(decision.problem(), "");
    EXPECT_GT(decision.fused_ns(), 0);
    EXPECT_LE(decision.proof().gain_low(), decision.proof().gain_high());
    EXPECT_EQ(decision.fused(), decision.proof().gain_high() >= 0);
  }
  // What is known decides.
  proto::FusionDecision edited = decisions->all().decisions(0);
  ASSERT_EQ(edited.site(),
            "matmul(f32[6,16],f32[16,16]); add(f32[6,16],f32[16])");
  edited.set_fused(false);
  edited.mutable_proof()->set_gain(-0.5);
  decisions->Add(edited);
  edited = decisions->all().decisions(1);
  edited.set_fused(true);
  decisions->Add(edited);
  ASSERT_TRUE(decisions->Save().ok());
  auto second = MeasuredFusion::Create(folder_, *device_, {});
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(Linears(**second), 1);
  EXPECT_EQ(why_not_.substr(0, 26), "unfused is faster: -50.0% ");
  const std::string rows = (*second)->Rows().Format(OutputFormat::kCsv, 200);
  EXPECT_NE(rows.find("matmul + bias,2,"), std::string::npos) << rows;
}

TEST_F(MeasuredFusionTest, DecisionsAboutOtherKernelsAreMeasuredAgain) {
  const std::string folder = folder_ + "3";
  {
    auto first = MeasuredFusion::Create(folder, *device_, {});
    ASSERT_TRUE(first.ok());
    Linears(**first);
    ASSERT_TRUE((*first)->Save().ok());
  }
  auto decisions =
      graph::FusionDecisions::Load(folder, device_->hardware().id());
  ASSERT_TRUE(decisions.ok());
  proto::FusionDecision old = decisions->all().decisions(0);
  const std::string kernels = old.kernels();
  EXPECT_EQ(kernels.size(), 16);
  EXPECT_NE(kernels, decisions->all().decisions(1).kernels());
  old.set_kernels("of another day");
  old.set_fused_ns(-1);
  decisions->Add(old);
  ASSERT_TRUE(decisions->Save().ok());
  auto second = MeasuredFusion::Create(folder, *device_, {});
  ASSERT_TRUE(second.ok());
  Linears(**second);
  ASSERT_TRUE((*second)->Save().ok());
  decisions = graph::FusionDecisions::Load(folder, device_->hardware().id());
  ASSERT_TRUE(decisions.ok());
  EXPECT_EQ(decisions->all().decisions(0).kernels(), kernels);
  EXPECT_GT(decisions->all().decisions(0).fused_ns(), 0);
  const std::string rows = (*second)->Rows().Format(OutputFormat::kCsv, 200);
  EXPECT_NE(rows.find(", measured again"), std::string::npos) << rows;
  EXPECT_EQ(rows.find(", measured again"), rows.rfind(", measured again"));
}

TEST_F(MeasuredFusionTest, ARuleThatComputesSomethingElseIsNotApplied) {
  auto fusion = MeasuredFusion::Create(folder_ + "2", *device_, {});
  ASSERT_TRUE(fusion.ok());
  graph::FusionReport report;
  const auto fused = graph::Fuse(Layers(),
                                 {{"wrong",
                                   "add(matmul($x, $w), $b)",
                                   {},
                                   "add(mul(matmul($x, $w), 2:b), $b)"}},
                                 &report, (*fusion)->chooser());
  ASSERT_TRUE(fused.ok()) << fused.status();
  ASSERT_EQ(report.size(), 3);
  EXPECT_EQ(report[0].why_not.substr(0, 18), "the result differs");
}

}  // namespace
}  // namespace optrail::suites
