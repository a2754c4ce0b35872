#include "tuning/proto/canonical.h"

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
