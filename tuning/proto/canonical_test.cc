#include "tuning/proto/canonical.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

using ::testing::HasSubstr;

TEST(CanonicalTest, ConfigIsSortedByKnobWhateverTheOrderGiven) {
  const auto config = ParseConfig(" unroll=2, algorithm=online ,fast=true");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(CanonicalText(*config), "algorithm=online,fast=true,unroll=2");
  proto::Config reversed;
  for (int i = config->set_size() - 1; i >= 0; --i) {
    *reversed.add_set() = config->set(i);
  }
  EXPECT_EQ(CanonicalText(reversed), CanonicalText(*config));
}

TEST(CanonicalTest, EmptyConfigIsTheConfigWithoutKnobs) {
  const auto config = ParseConfig("");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(CanonicalText(*config), "");
}

TEST(CanonicalTest, RejectsMalformedConfigsNamingThePart) {
  for (const char* text : {"a", "a=", "=1", "a=1,,b=2", "a=1,a=2", "1a=3",
                           "a=b c", "a=$(x)", "a/b=1"}) {
    EXPECT_EQ(ParseConfig(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
  EXPECT_THAT(std::string(ParseConfig("mr=6,mr=8").status().message()),
              HasSubstr("\"mr\" twice"));
}

TEST(CanonicalTest, ShapeRoundTripsInDeclaredOrder) {
  for (const char* text :
       {"m=512,n=64,k=8/f32", "rows=1,cols=7/bf16+bf16+f32"}) {
    const auto shape = ParseShape(text);
    ASSERT_TRUE(shape.ok()) << shape.status();
    EXPECT_EQ(CanonicalText(*shape), text);
  }
  EXPECT_EQ(DimValue(*ParseShape("m=512,n=64/f32"), "n"), 64);
  EXPECT_EQ(DimValue(*ParseShape("m=512,n=64/f32"), "k"), absl::nullopt);
}

TEST(CanonicalTest, RejectsMalformedShapesNamingTheDimension) {
  for (const char* text : {"m=512", "m=0/f32", "m=-1/f32", "m=x/f32",
                           "m=99999999999999999999/f32", "m=1/f33", "m=1/"}) {
    EXPECT_EQ(ParseShape(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
  EXPECT_THAT(std::string(ParseShape("m=4,n=0/f32").status().message()),
              HasSubstr("dimension \"n\""));
  EXPECT_THAT(std::string(ParseShape("m=4/float").status().message()),
              HasSubstr("expected one of f64, f32"));
}

TEST(CanonicalTest, AttributesStandBetweenDimensionsAndTypes) {
  const auto shape = ParseShape("n=32,c=64/stride=0, padding=-1,act=re.lu/f16");
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(CanonicalText(*shape),
            "n=32,c=64/act=re.lu,padding=-1,stride=0/f16");
  ASSERT_NE(FindAttribute(shape->attributes(), "stride"), nullptr);
  EXPECT_EQ(FindAttribute(shape->attributes(), "stride")->int_(), 0);
  EXPECT_EQ(FindAttribute(shape->attributes(), "act")->variant(), "re.lu");
  EXPECT_EQ(FindAttribute(shape->attributes(), "n"), nullptr);
  // Whatever the order in the message.
  proto::Shape reversed = *shape;
  std::reverse(reversed.mutable_attributes()->begin(),
               reversed.mutable_attributes()->end());
  EXPECT_EQ(CanonicalText(reversed), CanonicalText(*shape));
}

TEST(CanonicalTest, RejectsMalformedAttributesNamingThem) {
  for (const char* text :
       {"m=1//f32", "m=1/a/f32", "m=1/a=/f32", "m=1/a=1,a=2/f32",
        "m=1/a=true/f32", "m=1/a=b c/f32", "m=1/1a=3/f32", "m=1/a=1/b=1/f32"}) {
    EXPECT_EQ(ParseShape(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
  EXPECT_THAT(std::string(ParseShape("m=1/causal=true/f32").status().message()),
              HasSubstr("attribute \"causal\""));
}

TEST(CanonicalTest, AnIntegerAndAVariantAreDifferentValues) {
  const Attributes ints = *ParseAttributes("a=1");
  const Attributes variants = *ParseAttributes("a=x");
  EXPECT_TRUE(SameValue(ints[0], ints[0]));
  EXPECT_FALSE(SameValue(ints[0], variants[0]));
  EXPECT_FALSE(SameValue(ints[0], (*ParseAttributes("a=2"))[0]));
}

TEST(CanonicalTest, ADeviceKindOfAnotherWorkspaceIsItsNumber) {
  const auto npu = static_cast<proto::DeviceKind>(77);
  EXPECT_EQ(DeviceName(npu), "77");
  EXPECT_EQ(*ParseDevice("77"), npu);
  // A listed one has one name.
  EXPECT_FALSE(ParseDevice("1").ok());
  EXPECT_FALSE(ParseDevice("077").ok());
  EXPECT_FALSE(ParseDevice("-3").ok());
}

TEST(CanonicalTest, BackendNamesAreLowerCaseAndSomeReserved) {
  for (const char* name : {"openblas", "onednn2", "a_b"}) {
    EXPECT_TRUE(IsBackendName(name)) << name;
  }
  for (const char* name :
       {"", "Best", "best", "all", "1a", "a-b", "a:b", "_"}) {
    EXPECT_FALSE(IsBackendName(name)) << name;
  }
}

TEST(CanonicalTest, WhatIsAbsentFromATaskIsNotWritten) {
  proto::Task task;
  task.set_operator_name("conv2d");
  task.set_device_kind(proto::CUDA);
  *task.mutable_shape() = *ParseShape("n=8,c=64/padding=1/f16");
  task.set_threads(1);
  task.set_cache_mode(proto::HOT);
  EXPECT_EQ(TaskText(task), "conv2d/cuda/n=8,c=64/padding=1/f16/threads=1/hot");
  task.set_devices(1);
  EXPECT_EQ(TaskText(task), "conv2d/cuda/n=8,c=64/padding=1/f16/threads=1/hot");
  task.set_backend("cudnn");
  task.set_launch_mode(proto::GRAPH);
  task.set_devices(2);
  EXPECT_EQ(TaskText(task),
            "conv2d/cuda:cudnn/n=8,c=64/padding=1/f16/threads=1/hot/graph/"
            "devices=2");
}

TEST(CanonicalTest, ACommandHasNoShapeAndIsKnownByTheKeyOfItsJournals) {
  proto::Task task;
  task.set_operator_name("command_gemm");
  task.set_device_kind(proto::CPU);
  task.set_kernel_id("k");
  task.set_hardware_id("h");
  EXPECT_EQ(TaskText(task), "command_gemm/cpu");
  EXPECT_EQ(TrialKey(task, proto::Config()),
            "command_gemm/cpu///threads=0/unspecified|k|h|");
}

TEST(CanonicalTest, ObjectivesOfTimeAloneAreNotWritten) {
  proto::Session session;
  EXPECT_EQ(ObjectivesText(session.objectives()), "");
  proto::Objective* time = session.add_objectives();
  time->set_metric("time");
  time->set_unit("ns");
  time->set_direction(proto::LOWER_IS_BETTER);
  EXPECT_EQ(ObjectivesText(session.objectives()), "");
  time->set_limit(1000);
  EXPECT_EQ(ObjectivesText(session.objectives()), "time:min<=1000");
  proto::Objective* rate = session.add_objectives();
  rate->set_metric("rate");
  rate->set_direction(proto::HIGHER_IS_BETTER);
  rate->set_weight(0.5);
  EXPECT_EQ(ObjectivesText(session.objectives()),
            "time:min<=1000,rate:max@0.5");
}

TEST(CanonicalTest, TrialKeyHoldsTaskKernelHardwareAndConfig) {
  proto::Task task;
  task.set_operator_name("matmul");
  task.set_device_kind(proto::CPU);
  task.set_kernel_id("k1");
  *task.mutable_shape() = *ParseShape("m=1,n=2,k=3/f32");
  task.set_hardware_id("hw");
  task.set_threads(2);
  task.set_cache_mode(proto::HOT);
  EXPECT_EQ(TrialKey(task, *ParseConfig("b=1,a=x")),
            "matmul/cpu/m=1,n=2,k=3/f32/threads=2/hot|k1|hw|a=x,b=1");
}

TEST(CanonicalTest, OutcomeOfANewerWriterIsPrintedByNumber) {
  EXPECT_EQ(OutcomeName(proto::TIMED_OUT), "TIMED_OUT");
  EXPECT_EQ(OutcomeName(static_cast<proto::Outcome>(77)), "OUTCOME_77");
}

}  // namespace
}  // namespace optrail::tuning
