#include "diagnosis/cases.h"

#include <vector>

#include "absl/strings/str_format.h"
#include "gtest/gtest.h"

namespace optrail::diagnosis {
namespace {

proto::Diagnosis Make(const char* id, const char* op, const char* cause,
                      double memory_gain) {
  proto::Diagnosis diagnosis;
  diagnosis.set_diagnosis_id(id);
  diagnosis.mutable_task()->set_operator_name(op);
  diagnosis.mutable_task()->set_hardware_id("cpu");
  diagnosis.set_time_ns(1000);
  diagnosis.add_causes()->add_chain()->set_class_name(cause);
  proto::DiagnosisNumber& number = *diagnosis.add_numbers();
  number.set_name("memory_gain");
  number.set_value(memory_gain);
  return diagnosis;
}

TEST(SimilarCasesTest, TheNearestComeFirstAndOthersAreLeftOut) {
  const std::vector<proto::Diagnosis> earlier = {
      Make("far", "matmul", "latency", .1),
      Make("other_op", "rms_norm", "strided", .6),
      Make("same", "layer_norm", "strided", .65),
  };
  const auto similar =
      SimilarCases(Make("new", "layer_norm", "strided", .7), earlier);
  ASSERT_EQ(similar.size(), 2u);
  EXPECT_EQ(similar[0].diagnosis->diagnosis_id(), "same");
  EXPECT_NEAR(similar[0].distance, .05, 1e-9);
  EXPECT_EQ(similar[1].diagnosis->diagnosis_id(), "other_op");
}

TEST(CitationOfTest, NamesTheAdviceThatBroughtMost) {
  proto::Diagnosis diagnosis = Make("20261120T103000Z-1", "add", "strided", .5);
  diagnosis.set_verdict("walks down columns");
  proto::Dim& dim = *diagnosis.mutable_task()->mutable_shape()->add_dims();
  dim.set_name("n");
  dim.set_value(8);
  diagnosis.mutable_task()->mutable_shape()->add_data_types(proto::F32);
  EXPECT_EQ(CitationOf(diagnosis),
            "20261120T103000Z-1: add n=8/f32: walks down columns; no advice "
            "was tried");
  for (const double realised : {.05, .31, .2}) {
    proto::DiagnosisAdvice& advice = *diagnosis.add_advice();
    advice.set_text(absl::StrFormat("do %.2f", realised));
    advice.set_predicted_gain(.4);
    advice.set_realised_gain(realised);
  }
  EXPECT_EQ(CitationOf(diagnosis),
            "20261120T103000Z-1: add n=8/f32: walks down columns; do 0.31: 40% "
            "predicted, 31% realised");
}

}  // namespace
}  // namespace optrail::diagnosis
