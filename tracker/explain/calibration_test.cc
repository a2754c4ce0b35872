#include "tracker/explain/calibration.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

TEST(CalibrationTableTest, ComparesWhatWasPredictedAndRealised) {
  proto::Diagnosis diagnosis;
  for (const auto& [predicted, realised] :
       std::vector<std::pair<double, double>>{{.5, .4}, {.4, .1}}) {
    proto::DiagnosisAdvice& advice = *diagnosis.add_advice();
    advice.set_kind(proto::USE_BACKEND);
    advice.set_predicted_gain(predicted);
    advice.set_realised_gain(realised);
  }
  diagnosis.add_advice()->set_kind(proto::CHANGE_CODE);
  const std::string json = CalibrationTable({diagnosis}).ToJson();
  EXPECT_NE(json.find("\"advice\": \"use_backend\""), std::string::npos)
      << json;
  EXPECT_NE(json.find("\"half_or_more_share\": 0.5"), std::string::npos)
      << json;
  EXPECT_NE(json.find("\"advice\": \"change_code\""), std::string::npos);
  // The first advice alone brought more than half of what it promised.
  const size_t first = json.find("\"advice\": \"(first)\"");
  ASSERT_NE(first, std::string::npos) << json;
  EXPECT_NE(json.substr(first, json.find('}', first) - first)
                .find("\"half_or_more_share\": 1"),
            std::string::npos)
      << json;
}

// Earlier versions stored a gain of 0 where the session had measured every
// config of the space already.
TEST(CalibrationTableTest, LeavesOutSearchesThatHadNothingToTry) {
  proto::Diagnosis diagnosis;
  for (const char* outcome : {"0 trials found nothing that is proven better",
                              "10 trials found nothing that is proven better",
                              "60 trials found tile=8"}) {
    proto::DiagnosisAdvice& advice = *diagnosis.add_advice();
    advice.set_kind(proto::TUNE_KNOBS);
    advice.set_predicted_gain(.2);
    advice.set_realised_gain(outcome[0] == '6' ? .2 : 0);
    advice.set_outcome(outcome);
  }
  EXPECT_FALSE(WasTried(diagnosis.advice(0)));
  EXPECT_TRUE(WasTried(diagnosis.advice(1)));
  EXPECT_TRUE(WasTried(diagnosis.advice(2)));
  EXPECT_FALSE(WasTried(proto::DiagnosisAdvice()));
  const std::string csv = CalibrationTable({diagnosis}).ToCsv();
  // Three were given and two tried; one of these brought half or more.
  EXPECT_NE(csv.find("tune_knobs,3,2,0.2,0.1,0.5,0.5"), std::string::npos)
      << csv;
  // The first was not tried at all.
  EXPECT_NE(csv.find("(first),1,0,"), std::string::npos) << csv;
}

}  // namespace
}  // namespace optrail::tracker
