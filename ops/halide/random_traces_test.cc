// Programs drawn at random, over every operator that has an algorithm: each is
// compiled, runs and matches the reference, or is refused with a reason; none
// ends the process. --traces=5000 for a campaign.

#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ops/core/backend.h"
#include "ops/core/device_type.h"
#include "ops/core/reference_check.h"
#include "ops/core/registry.h"
#include "tuning/proto/canonical.h"
#include "tuning/schedule/rule.h"
#include "tuning/schedule/trace_source.h"

ABSL_FLAG(int, traces, 3, "how many programs of each shape");
ABSL_FLAG(std::string, op, "", "only this operator");
ABSL_FLAG(int, seed, 1, "of what is drawn");

namespace optrail::ops {
namespace {

// Odd sizes, so that no tile divides them, and even ones.
const std::map<std::string, std::vector<std::string>>& Shapes() {
  static const auto& shapes =
      *new std::map<std::string, std::vector<std::string>>{
          {"add", {"n=1000/f32", "n=37/f32"}},
          {"conv2d",
           {"n=1,h=9,w=11,c=16,k=40,r=3,s=3/padding=1/f32",
            "n=2,h=8,w=8,c=32,k=32,r=1,s=1/f32"}},
          {"conv_bn_relu",
           {"n=1,h=13,w=13,c=5,k=24,r=5,s=5/padding=2,stride=2/f32",
            "n=1,h=7,w=7,c=64,k=64,r=3,s=3/padding=1/f32"}},
          {"layer_norm", {"rows=5,cols=67/f32", "rows=12,cols=128/f32"}},
          {"linear",
           {"m=9,n=50,k=33/activation=gelu/f32", "m=32,n=64,k=64/f32"}},
          {"matmul",
           {"m=37,n=67,k=45/f32", "m=64,n=96,k=128/f32", "m=1,n=70,k=64/f32"}},
          {"relu", {"n=1000/f32"}},
          {"softmax", {"rows=9,cols=83/f32", "rows=16,cols=128/f32"}},
          {"sum",
           {"rows=9,cols=83/f32", "rows=64,cols=96/axis=rows/f32",
            "rows=20,cols=48/axis=all/f32"}},
          {"transpose", {"rows=37,cols=70/f32", "rows=64,cols=48/f32"}},
      };
  return shapes;
}

class RandomTracesTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto type = FindDeviceType(proto::CPU);
    ASSERT_TRUE(type.ok());
    DeviceOptions options;
    options.threads = 2;
    auto device = (*type)->Make(options);
    ASSERT_TRUE(device.ok()) << device.status().message();
    device_ = *std::move(device);
    target_.kind = proto::CPU;
    target_.isa = "native";
    target_.hardware = device_->hardware();
  }

  absl::Status RunAndVerify(const Operator& op, const Backend& backend,
                            const Artifact& artifact, const proto::Shape& shape,
                            const proto::Config& config) {
    auto invocation = backend.Load(artifact, shape, config, *device_);
    if (!invocation.ok()) return invocation.status();
    auto operands = CheckedOperands::Create(op, shape, *device_);
    if (!operands.ok()) return operands.status();
    for (const uint64_t seed : {1, 2}) {
      absl::Status status =
          (*operands)->Fill(seed, seed == 1 ? Values::kHard : Values::kTypical);
      if (status.ok()) status = (*operands)->Arm();
      if (!status.ok()) return status;
      (*invocation)->Run((*operands)->addresses());
      if (auto error = (*operands)->Verify(); !error.ok()) {
        return absl::DataLossError(error.status().message());
      }
    }
    return absl::OkStatus();
  }

  std::unique_ptr<Device> device_;
  Target target_;
};

TEST_F(RandomTracesTest, CompileAndMatchOrAreRefusedWithAReason) {
  std::map<std::string, int> refusals;
  int matched = 0, refused = 0;
  for (const auto& [name, shapes] : Shapes()) {
    if (!absl::GetFlag(FLAGS_op).empty() && absl::GetFlag(FLAGS_op) != name) {
      continue;
    }
    const OperatorEntry* const entry = Registry::Get().Find(name);
    ASSERT_NE(entry, nullptr) << name;
    const auto backend = entry->FindBackend(proto::CPU, "halide");
    ASSERT_TRUE(backend.ok()) << backend.status().message();
    const auto id = (*backend)->Id(target_);
    if (absl::IsUnavailable(id.status())) {
      GTEST_SKIP() << id.status().message();
    }
    for (const std::string& text : shapes) {
      const auto shape = tuning::ParseShape(text);
      ASSERT_TRUE(shape.ok()) << shape.status().message();
      const auto configs = (*backend)->Configs(*shape, 2);
      ASSERT_TRUE(configs.ok()) << configs.status().message();
      proto::Session begun;
      begun.set_strategy("random");
      begun.set_seed(absl::GetFlag(FLAGS_seed));
      auto proposer = (*configs)->Propose(begun, {});
      ASSERT_TRUE(proposer.ok()) << proposer.status().message();
      for (const proto::Config& config :
           (*proposer)->Ask(absl::GetFlag(FLAGS_traces))) {
        const std::string what =
            absl::StrCat(name, " ", text, " ", tuning::CanonicalText(config));
        const auto recipe = (*backend)->Describe({*shape, config, target_});
        ASSERT_TRUE(recipe.ok()) << what << ": " << recipe.status().message();
        const auto artifact = (*backend)->Compile(*recipe);
        absl::Status status = artifact.status();
        if (status.ok()) {
          status =
              RunAndVerify(*entry->op, **backend, *artifact, *shape, config);
        }
        if (status.ok()) {
          ++matched;
          continue;
        }
        EXPECT_TRUE(absl::IsInvalidArgument(status))
            << what << ": " << status.message();
        EXPECT_FALSE(status.message().empty()) << what;
        ++refused;
        ++refusals[std::string(status.message().substr(0, 100))];
      }
    }
  }
  std::cout << matched << " match, " << refused << " were refused\n";
  for (const auto& [why, count] : refusals) {
    std::cout << "  " << count << " x " << why << "\n";
  }
  EXPECT_GT(matched, 2 * refused);
}

// What nobody tuned must run, whatever the size.
TEST_F(RandomTracesTest, TheDefaultFitsEverySize) {
  const std::map<std::string, std::vector<std::string>> shapes = {
      {"conv_bn_relu",
       {"n=1,h=1,w=1,c=1,k=1,r=1,s=1/f32",
        "n=3,h=17,w=5,c=19,k=23,r=3,s=3/padding=1,stride=2/f32"}},
      {"layer_norm", {"rows=1,cols=1/f32", "rows=3,cols=131/f32"}},
      {"linear", {"m=1,n=1,k=1/activation=gelu/f32"}},
      {"matmul",
       {"m=1,n=1,k=1/f32", "m=1,n=1,k=4099/f32", "m=1,n=104,k=64/f32",
        "m=136,n=104,k=128/f32", "m=127,n=251,k=509/f32", "m=2,n=9,k=17/f32",
        "m=31,n=15,k=31/f32", "m=7,n=7,k=7/f32", "m=1,n=1000,k=2048/f32",
        "m=100,n=130,k=20/f32", "m=65,n=129,k=2111/f32",
        "m=256,n=1,k=256/f32"}},
      {"softmax", {"rows=1,cols=1/f32", "rows=7,cols=1021/f32"}},
      {"sum", {"rows=1,cols=1/axis=all/f32", "rows=131,cols=257/axis=all/f32"}},
      {"transpose", {"rows=1,cols=1/f32", "rows=101,cols=1/f32"}},
  };
  for (const auto& [name, texts] : shapes) {
    const OperatorEntry* const entry = Registry::Get().Find(name);
    ASSERT_NE(entry, nullptr) << name;
    const Backend* const backend = *entry->FindBackend(proto::CPU, "halide");
    if (!backend->Id(target_).ok()) GTEST_SKIP() << "no Halide";
    const proto::Config config = *tuning::ParseConfig("algorithm=default");
    for (const std::string& text : texts) {
      const auto shape = tuning::ParseShape(text);
      ASSERT_TRUE(shape.ok()) << text << ": " << shape.status().message();
      const auto recipe = backend->Describe({*shape, config, target_});
      ASSERT_TRUE(recipe.ok()) << text << ": " << recipe.status().message();
      const auto artifact = backend->Compile(*recipe);
      ASSERT_TRUE(artifact.ok())
          << name << " " << text << ": " << artifact.status().message();
      const absl::Status status =
          RunAndVerify(*entry->op, *backend, *artifact, *shape, config);
      EXPECT_TRUE(status.ok())
          << name << " " << text << ": " << status.message();
    }
  }
}

TEST_F(RandomTracesTest, ATraceIsReplayedToTheSameBytes) {
  const OperatorEntry* const entry = Registry::Get().Find("matmul");
  ASSERT_NE(entry, nullptr);
  const Backend* const backend = *entry->FindBackend(proto::CPU, "halide");
  if (!backend->Id(target_).ok()) GTEST_SKIP() << "no Halide";
  const proto::Shape shape = *tuning::ParseShape("m=37,n=67,k=45/f32");
  const proto::Config config = *tuning::ParseConfig("algorithm=default");
  const auto recipe = backend->Describe({shape, config, target_});
  ASSERT_TRUE(recipe.ok());
  const auto first = backend->Compile(*recipe);
  ASSERT_TRUE(first.ok()) << first.status().message();
  // Another in between, which would move on whatever is counted.
  const proto::Shape other = *tuning::ParseShape("m=8,n=32,k=16/f32");
  const auto between = backend->Describe({other, config, target_});
  ASSERT_TRUE(between.ok());
  ASSERT_TRUE(backend->Compile(*between).ok());
  const auto second = backend->Compile(*recipe);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(first->bytes, second->bytes);
}

// In a later version, too, as long as nothing that decides about it changed:
// what does is part of the backend's id and of the cache's keys.
TEST_F(RandomTracesTest, ARuleThatIsNewIsNoticed) {
  class Another : public tuning::SketchRule {
   public:
    std::string name() const override { return "another"; }
    void Apply(const tuning::Machine&, int, tuning::Decisions&,
               tuning::Program&) const override {}
  };
  const OperatorEntry* const entry = Registry::Get().Find("matmul");
  ASSERT_NE(entry, nullptr);
  const Backend* const backend = *entry->FindBackend(proto::CPU, "halide");
  const auto id = backend->Id(target_);
  if (!id.ok()) GTEST_SKIP() << "no Halide";
  const proto::Shape shape = *tuning::ParseShape("m=8,n=32,k=16/f32");
  const proto::Config config = *tuning::ParseConfig("algorithm=default");
  const CompileRequest request = {shape, config, target_};
  const auto recipe = backend->Describe(request);
  ASSERT_TRUE(recipe.ok());
  ASSERT_TRUE(tuning::RegisterSketchRule(95, std::make_unique<Another>()));
  EXPECT_NE(*backend->Id(target_), *id);
  const auto changed = backend->Describe(request);
  ASSERT_TRUE(changed.ok());
  EXPECT_NE(changed->Key(), recipe->Key());
}

TEST_F(RandomTracesTest, WhatDoesNotFitIsRefusedBeforeItIsCompiled) {
  const OperatorEntry* const entry = Registry::Get().Find("matmul");
  ASSERT_NE(entry, nullptr);
  const Backend* const backend = *entry->FindBackend(proto::CPU, "halide");
  if (!backend->Id(target_).ok()) GTEST_SKIP() << "no Halide";
  const proto::Shape shape = *tuning::ParseShape("m=37,n=67,k=45/f32");
  const proto::Config config = *tuning::ParseConfig("s0_at=99");
  const auto recipe = backend->Describe({shape, config, target_});
  ASSERT_TRUE(recipe.ok());
  const auto artifact = backend->Compile(*recipe);
  ASSERT_FALSE(artifact.ok());
  EXPECT_TRUE(absl::IsInvalidArgument(artifact.status()));
  EXPECT_NE(artifact.status().message().find("trace: decision"),
            absl::string_view::npos)
      << artifact.status().message();
}

}  // namespace
}  // namespace optrail::ops

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  return RUN_ALL_TESTS();
}
