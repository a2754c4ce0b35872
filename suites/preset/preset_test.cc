#include "suites/preset/preset.h"

#include <map>
#include <set>

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "suites/workload/workload.h"

namespace optrail::suites {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::string ErrorOf(const std::string& text) {
  const auto preset = ParsePreset("name: \"my\"\n" + text, "my.preset");
  EXPECT_FALSE(preset.ok()) << text;
  return std::string(preset.status().message());
}

TEST(Preset, TheShippedOnesAreWellFormedAndNameWhatTheyTune) {
  EXPECT_THAT(NamesOf(EmbeddedPresets()),
              UnorderedElementsAre("recommender", "vision", "language"));
  for (const std::string& name : NamesOf(EmbeddedPresets())) {
    const auto preset = FindPreset(name);
    ASSERT_TRUE(preset.ok()) << preset.status();
    EXPECT_EQ(preset->proto.name(), name);
    EXPECT_FALSE(preset->proto.doc().empty()) << name;
    const auto workload = FindWorkload(preset->proto.workload());
    ASSERT_TRUE(workload.ok()) << workload.status();
    // A share of an operator that the workload lacks would go to nobody.
    std::set<std::string> operators;
    for (const proto::WorkloadLayer& layer : workload->layer()) {
      operators.insert(layer.operator_name());
    }
    for (const auto& [op, fraction] : preset->shares) {
      EXPECT_EQ(operators.count(op), 1) << name << " " << op;
    }
  }
}

TEST(Preset, SettingsHaveTheTextsOfFlagsAndTheirLines) {
  const auto preset = ParsePreset(
      "name: \"my\"\n"
      "workload: \"smoke\"\n"
      "threads: [\"1\", \"2\"]\n"
      "total_trials: 40 total_time: \"10m\"\n"
      "price_per_kwh: .25\n"
      "share { operator_name: \"matmul\" fraction: .75 }\n"
      "share { operator_name: \"add\" fraction: .25 }\n",
      "my.preset");
  ASSERT_TRUE(preset.ok()) << preset.status();
  std::vector<std::string> lines;
  for (const FlagSetting& setting : preset->settings) {
    lines.push_back(setting.flag + "=" + setting.value + " " + setting.place);
  }
  EXPECT_THAT(
      lines,
      ElementsAre("workload=smoke my.preset:2", "threads=1,2 my.preset:3",
                  "price_per_kwh=0.25 my.preset:5",
                  "total_trials=40 my.preset:4", "total_time=10m my.preset:4"));
  EXPECT_EQ(preset->shares,
            (std::map<std::string, double>{{"add", .25}, {"matmul", .75}}));
  EXPECT_EQ(preset->shares_place, "my.preset:6");
}

TEST(Preset, AZeroThatIsWrittenIsASetting) {
  const auto preset = ParsePreset("name: \"my\" patience: 0", "my.preset");
  ASSERT_TRUE(preset.ok()) << preset.status();
  ASSERT_EQ(preset->settings.size(), 1);
  EXPECT_EQ(preset->settings[0].value, "0");
  EXPECT_THAT(ParsePreset("name: \"my\"", "my.preset")->settings, IsEmpty());
}

TEST(Preset, AnUnknownNameListsTheKnownOnes) {
  EXPECT_THAT(std::string(FindPreset("recomender").status().message()),
              AllOf(HasSubstr("language, recommender, vision"),
                    HasSubstr("did you mean recommender?")));
}

TEST(Preset, AFileIsReadByItsPathAndItsWorkloadLiesBesideIt) {
  const std::string folder = ::testing::TempDir() + "/beside";
  ASSERT_TRUE(CreateDirectories(folder).ok());
  ASSERT_TRUE(WriteFileAtomically(folder + "/one.workload.textproto",
                                  "name: \"one\" layer { operator_name: "
                                  "\"add\" shape: \"n=4096/f32\" }")
                  .ok());
  const std::string path = folder + "/one.preset.textproto";
  ASSERT_TRUE(WriteFileAtomically(
                  path, "name: \"one\" workload: \"one.workload.textproto\"")
                  .ok());
  const auto preset = FindPreset(path);
  ASSERT_TRUE(preset.ok()) << preset.status();
  EXPECT_EQ(preset->settings[0].value, folder + "/one.workload.textproto");
  EXPECT_EQ(FindPreset(path + ".missing").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(Preset, ErrorsNameTheLine) {
  EXPECT_THAT(ErrorOf("total_trails: 4"),
              AllOf(HasSubstr("my.preset:2:"), HasSubstr("total_trails")));
  EXPECT_THAT(ErrorOf("\ntotal_trials: \"many\""), HasSubstr("my.preset:3:"));
  EXPECT_THAT(ErrorOf("workload: \"dlmr\""),
              AllOf(HasSubstr("my.preset:2:1: no workload \"dlmr\""),
                    HasSubstr("did you mean dlrm?")));
  EXPECT_THAT(ErrorOf("strategy: \"\""),
              HasSubstr("my.preset:2:1: strategy is empty"));
  EXPECT_THAT(
      std::string(ParsePreset("name: \"My\"", "my.preset").status().message()),
      HasSubstr("my.preset:1:1: name is \"My\", expected [a-z0-9_]+"));
  EXPECT_THAT(
      std::string(ParsePreset("doc: \"x\"", "my.preset").status().message()),
      HasSubstr("a preset needs a name"));
}

TEST(Preset, SharesAreOfOperatorsAndSumToAtMostOne) {
  const std::string add = "share { operator_name: \"add\" fraction: .4 }\n";
  EXPECT_THAT(ErrorOf(add + "share { operator_name: \"softmax\"\n"
                            "fraction: .7 }"),
              AllOf(HasSubstr("my.preset:3:1: "), HasSubstr("sum to 1.1"),
                    HasSubstr("at most 1")));
  EXPECT_THAT(ErrorOf(add + add), HasSubstr("add has two shares"));
  EXPECT_THAT(ErrorOf("share { operator_name: \"linea\" fraction: .4 }"),
              AllOf(HasSubstr("my.preset:2:"),
                    HasSubstr("layer_norm_backward, linear")));
  for (const char* fraction : {"0", "-.1", "1.5", "nan"}) {
    EXPECT_THAT(
        ErrorOf(std::string("share { operator_name: \"add\" fraction: ") +
                fraction + " }"),
        AllOf(HasSubstr("my.preset:2:"), HasSubstr("fraction is ")));
  }
  // Ten tenths are one, whatever binary fractions make of them.
  std::string tenths;
  for (const char* op :
       {"add", "softmax", "matmul", "linear", "relu", "conv2d", "attention",
        "rms_norm", "conv_bn_relu", "embedding_bag"}) {
    tenths +=
        std::string("share { operator_name: \"") + op + "\" fraction: .1 }\n";
  }
  const auto preset = ParsePreset("name: \"my\"\n" + tenths, "my.preset");
  EXPECT_TRUE(preset.ok()) << preset.status();
}

}  // namespace
}  // namespace optrail::suites
