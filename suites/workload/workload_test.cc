#include "suites/workload/workload.h"

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::suites {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  const auto workload =
      ParseWorkload("name: \"my\" " + text, "my.workload.textproto");
  EXPECT_FALSE(workload.ok()) << text;
  return std::string(workload.status().message());
}

TEST(Workload, SmokeIsEmbedded) {
  EXPECT_THAT(NamesOf(EmbeddedWorkloads()), Contains("smoke"));
  const auto smoke = FindWorkload("smoke");
  ASSERT_TRUE(smoke.ok()) << smoke.status();
  EXPECT_GT(smoke->layer_size(), 4);
}

TEST(Workload, EveryEmbeddedOneIsWellFormed) {
  for (const std::string& name : NamesOf(EmbeddedWorkloads())) {
    const auto workload = FindWorkload(name);
    EXPECT_TRUE(workload.ok()) << workload.status();
  }
}

TEST(Workload, AnUnknownNameListsTheKnownOnes) {
  EXPECT_THAT(std::string(FindWorkload("smok").status().message()),
              HasSubstr("smoke"));
}

TEST(Workload, AFileIsReadByItsPath) {
  const std::string path = ::testing::TempDir() + "/one.workload.textproto";
  ASSERT_TRUE(WriteFileAtomically(path,
                                  "name: \"one\" layer { operator_name: "
                                  "\"add\" shape: \"n=4096/f32\" }")
                  .ok());
  const auto workload = FindWorkload(path);
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ(workload->layer(0).operator_name(), "add");
  EXPECT_EQ(FindWorkload(path + ".missing").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(Workload, ErrorsNameTheLine) {
  EXPECT_THAT(ErrorOf("layer {\n  operatr_name: \"add\" }"),
              HasSubstr("my.workload.textproto:2:"));
  EXPECT_THAT(
      ErrorOf("layer { operator_name: \"add\" shape: \"n=4096/f32\" }\n"
              "layer { operator_name: \"matmull\" shape: \"n=1/f32\" }"),
      AllOf(HasSubstr("my.workload.textproto:2:"), HasSubstr("matmull")));
  EXPECT_THAT(
      ErrorOf("\nlayer { operator_name: \"add\" shape: \"n=oops/f32\" }"),
      AllOf(HasSubstr("my.workload.textproto:2:"), HasSubstr("oops")));
  const std::string layer =
      "layer { operator_name: \"add\" shape: \"n=4096/f32\" }\n";
  for (const char* out_of_range :
       {"processes: -1", "processes: 1001", "tune_seconds: -1"}) {
    EXPECT_THAT(
        ErrorOf(layer + out_of_range),
        AllOf(HasSubstr("my.workload.textproto:2:"), HasSubstr("expected 0")));
  }
  const std::string named = "name: \"../\\033]0;x\\007\" " + layer;
  EXPECT_THAT(std::string(ParseWorkload(named, "w").status().message()),
              HasSubstr(R"(name is "../\x1b]0;x\x07", expected)"));
  EXPECT_THAT(ErrorOf("layer { operator_name: \"add\" shape: \"n=4096/f32\" "
                      "part: \"ffn\" }"),
              HasSubstr("expected both or neither"));
  EXPECT_THAT(ErrorOf("layer { operator_name: \"add\" shape: \"rows=3/f32\" }"),
              HasSubstr("rows"));
  EXPECT_THAT(ErrorOf("layer { operator_name: \"add\" shape: \"n=4096/f32\" }\n"
                      "layer { operator_name: \"add\" shape: \"n=4096/f32\" }"),
              HasSubstr("my.workload.textproto:2:"));
}

}  // namespace
}  // namespace optrail::suites
