#include "tracker/detect/detect_csv.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>

#include "absl/strings/str_format.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tracker/detect/evaluation/synthetic.h"
#include "tracker/detect/online.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class DetectCsvTest : public ::testing::Test {
 protected:
  // Writes the series under the ids given and runs the command.
  absl::Status Run(
      const std::vector<std::pair<std::string, std::vector<double>>>& all) {
    std::string text = "id,t,value\n";
    for (const auto& [id, values] : all) {
      for (size_t t = 0; t < values.size(); ++t) {
        absl::StrAppendFormat(&text, "%s,%d,%.9g\n", id, t, values[t]);
      }
    }
    options_.csv = JoinPath(::testing::TempDir(), "detect.csv");
    EXPECT_TRUE(WriteFileAtomically(options_.csv, text).ok());
    out_.str("");
    return DetectCsv(options_, out_);
  }

  DetectCsvOptions options_;
  std::ostringstream out_;
};

TEST_F(DetectCsvTest, PrintsJsonWithExactlyTheDocumentedMembers) {
  const auto step = SyntheticSeries(NoiseKind::kNormal, 200, {{120, 1.1}}, 1);
  const auto flat = SyntheticSeries(NoiseKind::kNormal, 200, {}, 2);
  ASSERT_TRUE(Run({{"7", step}, {"\"a\"\"\\\n\"", flat}}).ok());
  const nlohmann::json json = nlohmann::json::parse(out_.str());
  ASSERT_EQ(json.size(), 2);
  EXPECT_EQ(json[0].size(), 2);
  EXPECT_EQ(json[0]["id"], "7");
  ASSERT_EQ(json[0]["change_points"].size(), 1);
  const nlohmann::json& change = json[0]["change_points"][0];
  EXPECT_EQ(change.size(), 3);
  EXPECT_EQ(change["index"], 120);
  EXPECT_GT(change["confidence"].get<double>(), 0.99);
  EXPECT_LT(change["confidence"].get<double>(), 1);
  EXPECT_NEAR(change["relative_change"].get<double>(), 0.1, 0.01);
  EXPECT_EQ(json[1]["id"], "a\"\\\n");
  EXPECT_TRUE(json[1]["change_points"].is_array());
  EXPECT_THAT(json[1]["change_points"], IsEmpty());
}

TEST_F(DetectCsvTest, TellsProvisionalFromConfirmedOnline) {
  options_.mode = DetectMode::kOnline;
  auto values =
      SyntheticSeries(NoiseKind::kNormal, 153, {{80, 1.1}, {150, 1 / 1.1}}, 1);
  ASSERT_TRUE(Run({{"x", values}}).ok());
  const nlohmann::json changes =
      nlohmann::json::parse(out_.str())[0]["change_points"];
  ASSERT_EQ(changes.size(), 2);
  EXPECT_EQ(changes[0]["index"], 80);
  EXPECT_FALSE(changes[0].contains("provisional"));
  EXPECT_EQ(changes[1]["index"], 150);
  EXPECT_EQ(changes[1]["provisional"], true);
}

// As `history export` writes it; a value of NaN is left out, and the epoch
// changes where `epochs` says so.
std::string Export(const std::vector<double>& values,
                   const std::vector<int>& epoch_begins = {}) {
  std::string text =
      "id,t,value,low,high,processes,outcome,unit,commit,position,started_utc,"
      "epoch,config\n";
  for (size_t t = 0; t < values.size(); ++t) {
    if (std::isnan(values[t])) continue;
    const auto epoch =
        std::upper_bound(epoch_begins.begin(), epoch_begins.end(), t) -
        epoch_begins.begin();
    absl::StrAppendFormat(&text, "x,%d,%.17g,,,1,OK,ns,c%d,%d,now,%d,\n", t,
                          values[t], t, t, epoch);
  }
  return text;
}

TEST_F(DetectCsvTest, OfAnExportSaysWhatTheJudgesDetectorSays) {
  // +25% at 57 of 60 and +10% at 25, where four points have no value.
  auto values =
      SyntheticSeries(NoiseKind::kNormal, 60, {{25, 1.1}, {57, 1.25}}, 1);
  for (const int lost : {0, 1, 30, 41}) values[lost] = NAN;
  options_.csv = JoinPath(::testing::TempDir(), "export.csv");
  ASSERT_TRUE(WriteFileAtomically(options_.csv, Export(values)).ok());
  ASSERT_TRUE(DetectCsv(options_, out_).ok());
  const nlohmann::json changes =
      nlohmann::json::parse(out_.str())[0]["change_points"];
  const OnlineResult expected = DetectOnline(values);
  ASSERT_EQ(changes.size(), expected.confirmed.size() + 1);
  EXPECT_EQ(changes[0]["t"], 25);
  EXPECT_EQ(changes[0]["index"], 23) << "rows are counted";
  EXPECT_EQ(changes[0]["commit"], "c25");
  EXPECT_EQ(changes.back()["t"], 57);
  EXPECT_EQ(changes.back()["provisional"], true);
  EXPECT_NEAR(changes.back()["relative_change"].get<double>(),
              expected.provisional->relative_change, 1e-6);
}

TEST_F(DetectCsvTest, LevelsOfTwoEpochsOfAnExportDoNotCompare) {
  const auto values = SyntheticSeries(NoiseKind::kNormal, 90, {{45, 1.5}}, 3);
  options_.csv = JoinPath(::testing::TempDir(), "epochs.csv");
  ASSERT_TRUE(WriteFileAtomically(options_.csv, Export(values, {45})).ok());
  for (const DetectMode mode :
       {DetectMode::kAuto, DetectMode::kOffline, DetectMode::kOnline}) {
    options_.mode = mode;
    out_.str("");
    ASSERT_TRUE(DetectCsv(options_, out_).ok());
    EXPECT_THAT(nlohmann::json::parse(out_.str())[0]["change_points"],
                IsEmpty());
  }
}

TEST_F(DetectCsvTest, RefusesADamagedExport) {
  for (const char* row :
       {"x,1.5,1,,,1,OK,ns,c,0,now,0,", "x,-1,1,,,1,OK,ns,c,0,now,0,",
        "x,99999999999,1,,,1,OK,ns,c,0,now,0,",
        "x,1,1,,,1,OK,ns,c,0,now,one,"}) {
    EXPECT_FALSE(ParseSeriesCsv(Export({}) + row, "export.csv").ok()) << row;
  }
  // A point without a value, as --failed_points writes it.
  EXPECT_TRUE(ParseSeriesCsv(Export({}) + "x,1,,,,0,CRASHED,ns,c,0,now,0,",
                             "export.csv")
                  .ok());
}

TEST_F(DetectCsvTest, PrintsTables) {
  const auto step = SyntheticSeries(NoiseKind::kNormal, 200, {{120, 1.1}}, 1);
  options_.format = "csv";
  ASSERT_TRUE(Run({{"x", step}}).ok());
  EXPECT_THAT(out_.str(), StartsWith("id,index,t,level_before,level_after,"));
  EXPECT_THAT(out_.str(), HasSubstr("\nx,120,120,"));
  options_.format = "table";
  ASSERT_TRUE(Run({{"x", step}}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("confirmed"));
}

TEST_F(DetectCsvTest, RefusesWhatItDoesNotKnow) {
  options_.format = "xml";
  EXPECT_THAT(std::string(Run({}).message()), HasSubstr("--format"));
  options_.format = "json";
  options_.csv = "/no/such.csv";
  EXPECT_THAT(std::string(DetectCsv(options_, out_).message()),
              HasSubstr("/no/such.csv"));
  EXPECT_THAT(out_.str(), IsEmpty());
}

TEST(DetectAll, IsTheSameForAnyNumberOfThreads) {
  std::vector<CsvSeries> series(100);
  for (size_t i = 0; i < series.size(); ++i) {
    series[i].values =
        SyntheticSeries(kAllNoiseKinds[i % 9], 120, {{60, 1.05}}, i);
  }
  for (const DetectMode mode : {DetectMode::kOffline, DetectMode::kOnline}) {
    const auto one = DetectAll(series, mode, 1);
    const auto many = DetectAll(series, mode, 5);
    ASSERT_EQ(one.size(), many.size());
    for (size_t i = 0; i < one.size(); ++i) {
      ASSERT_EQ(one[i].changes.size(), many[i].changes.size());
      for (size_t k = 0; k < one[i].changes.size(); ++k) {
        EXPECT_EQ(one[i].changes[k].index, many[i].changes[k].index);
        EXPECT_EQ(one[i].changes[k].confidence, many[i].changes[k].confidence);
      }
    }
  }
}

}  // namespace
}  // namespace optrail::tracker
