#ifndef OPTRAIL_TRACKER_EXPLAIN_CALIBRATION_H_
#define OPTRAIL_TRACKER_EXPLAIN_CALIBRATION_H_

// How the gains that diagnoses predicted compare with those that came, over all
// advice that was tried: advice is held to account.
//
//   std::cout << CalibrationTable(loaded.diagnoses).ToText();

#include <string>

#include "absl/types/span.h"
#include "base/text/table.h"
#include "tracker/proto/diagnosis.pb.h"

namespace optrail::tracker {

// Predicted against realised gains by kind of advice, and by finding of advice
// about a search: how many were tried after a prediction, the medians, the
// median relative error of the prediction, and the share of advice that brought
// half of what it promised. "(first)" is the first advice of each diagnosis.
Table CalibrationTable(absl::Span<const proto::Diagnosis> diagnoses);

// Returns whether the advice was applied and measured. Diagnoses of earlier
// versions hold a gain of 0 for a search that had no config left to try ("0
// trials found nothing"): it says nothing of the advice, and counts nowhere.
bool WasTried(const proto::DiagnosisAdvice& advice);

std::string AdviceKindText(proto::AdviceKind kind);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_EXPLAIN_CALIBRATION_H_
