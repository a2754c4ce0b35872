#include "suites/command/tune_program.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::suites {
namespace {

using ::testing::EndsWith;

TEST(TuneProgram, IsTheTargetOfTheSamePackage) {
  const std::string out =
      "/root/.cache/bazel/_bazel_root/1a/execroot/mine/"
      "bazel-out/k8-opt/bin";
  EXPECT_EQ(TuneProgramBeside(out + "/ops/softmax/softmax_bench"),
            "bazel run //ops/softmax:softmax_tune --");
  EXPECT_EQ(TuneProgramBeside(out + "/ops/softmax/softmax_tune"),
            "bazel run //ops/softmax:softmax_tune --");
  EXPECT_EQ(TuneProgramBeside(out + "/gelu_bench"),
            "bazel run //:gelu_tune --");
  EXPECT_EQ(TuneProgramBeside(out + "/external/optrail/ops/add/add_bench"),
            "bazel run @optrail//ops/add:add_tune --");
}

TEST(TuneProgram, IsTheNeighbourOfACopiedBinary) {
  EXPECT_EQ(TuneProgramBeside("/opt/my bench/gelu_bench"),
            "'/opt/my bench/gelu_tune'");
  EXPECT_EQ(TuneProgramBeside("gelu_bench"), "gelu_tune");
}

TEST(TuneProgram, KnowsItsOwnPath) {
  EXPECT_THAT(OwnPath(), EndsWith("tune_program_test"));
}

}  // namespace
}  // namespace optrail::suites
