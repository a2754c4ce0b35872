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

}  // namespace
}  // namespace optrail::tracker
