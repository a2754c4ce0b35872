#ifndef OPTRAIL_DIAGNOSIS_REPORT_H_
#define OPTRAIL_DIAGNOSIS_REPORT_H_

// A diagnosis for people, for pull requests and for programs.
//
//   std::cout << DiagnosisText(diagnosis, /*markdown=*/false);
//   std::cout << DiagnosesJson({diagnosis});
//
// The JSON is described by docs/json_schemas/diagnose.schema.json.

#include <string>

#include "absl/types/span.h"
#include "tracker/proto/diagnosis.pb.h"

namespace optrail::diagnosis {

std::string DiagnosisText(const proto::Diagnosis& diagnosis, bool markdown);
std::string DiagnosesJson(absl::Span<const proto::Diagnosis> diagnoses);

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_REPORT_H_
