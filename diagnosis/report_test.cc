#include "diagnosis/report.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "diagnosis/numbers.h"
#include "gtest/gtest.h"

namespace optrail::diagnosis {
namespace {

proto::Diagnosis DiagnosisOf(const Numbers& numbers) {
  proto::Diagnosis diagnosis;
  diagnosis.mutable_task()->set_operator_name("add");
  diagnosis.set_time_ns(2000);
  *diagnosis.mutable_numbers() = numbers.ToProto();
  return diagnosis;
}

TEST(UnknownTextTest, EachNumberOnceWithItsReasonAndTheTasksThatLackIt) {
  Numbers known, one, two;
  known.Set("memory_gain", .3, "test");
  one.SetUnsupported("memory_gain", "no second mapping");
  two.SetUnsupported("memory_gain", "another reason");
  two.SetUnsupported("vector_use", "not compiled");
  EXPECT_EQ(UnknownText({DiagnosisOf(known)}), "");
  EXPECT_EQ(UnknownText({DiagnosisOf(one)}), "memory_gain (no second mapping)");
  EXPECT_EQ(
      UnknownText({DiagnosisOf(known), DiagnosisOf(one), DiagnosisOf(two)}),
      "memory_gain (of 2 of 3 tasks: no second mapping), "
      "vector_use (of 1 of 3 tasks: not compiled)");
}

TEST(SummaryOfTest, NamesTheFirstCauseAndTheFirstAdviceOrWhyThereIsNone) {
  proto::Diagnosis slow = DiagnosisOf({});
  slow.set_roofline_share(.2);
  proto::DiagnosisCause& cause = *slow.add_causes();
  cause.add_chain()->set_class_name("memory");
  cause.add_chain()->set_class_name("strided");
  proto::DiagnosisAdvice& advice = *slow.add_advice();
  advice.set_kind(proto::TUNE_KNOBS);
  advice.add_knobs("unroll");
  advice.set_predicted_gain(.25);
  Numbers near, unclear;
  near.Set("roofline_share", .95, "test");
  unclear.Set("roofline_share", .2, "test");
  const std::string json =
      SummaryOf({slow, DiagnosisOf(near), DiagnosisOf(unclear)}).ToJson();
  EXPECT_NE(json.find("\"cause\": \"strided\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"advice\": \"tune unroll\""), std::string::npos);
  EXPECT_NE(json.find("\"predicted_gain\": 0.25"), std::string::npos);
  EXPECT_NE(json.find("\"realised_gain\": null"), std::string::npos);
  EXPECT_NE(json.find("\"cause\": \"none: near the roofline\""),
            std::string::npos);
  EXPECT_NE(json.find("\"cause\": \"not found\""), std::string::npos);
}

// Earlier versions stored a gain of 0 for a search that had nothing to try.
TEST(SummaryOfTest, HasNoRealisedGainOfWhatWasNotTried) {
  proto::Diagnosis diagnosis = DiagnosisOf({});
  proto::DiagnosisAdvice& advice = *diagnosis.add_advice();
  advice.set_realised_gain(0);
  for (const auto& [outcome, gain] :
       {std::pair{"0 trials found nothing that is proven better", "null"},
        std::pair{"9 trials found nothing that is proven better", "0"}}) {
    advice.set_outcome(outcome);
    const std::string field = absl::StrCat("\"realised_gain\": ", gain);
    for (const std::string& json :
         {SummaryOf({diagnosis}).ToJson(), DiagnosesJson({diagnosis})}) {
      EXPECT_TRUE(absl::StrContains(json, field)) << json;
    }
  }
}

}  // namespace
}  // namespace optrail::diagnosis
