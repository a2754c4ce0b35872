#ifndef OPTRAIL_DIAGNOSIS_DIAGNOSE_H_
#define OPTRAIL_DIAGNOSIS_DIAGNOSE_H_

// Diagnose says why one kernel takes the time it takes: experiments, causes by
// the table of classes, advice with predicted gains, and, where asked for, what
// the advice brings.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const proto::Diagnosis diagnosis,
//                            Diagnose({task, config}, machine, tools, {}));
//   std::cout << DiagnosisText(diagnosis, /*markdown=*/false);

#include <string>

#include "absl/status/statusor.h"
#include "diagnosis/advice.h"
#include "diagnosis/experiments.h"
#include "tracker/proto/diagnosis.pb.h"

namespace optrail::diagnosis {

struct DiagnoseOptions {
  // Applies what can be applied, and records the realised gains.
  bool try_advice = false;
};

// Everything of the record but its id, commit, workload and similar cases. The
// error of a kernel that does not run or is wrong.
absl::StatusOr<proto::Diagnosis> Diagnose(const Subject& subject,
                                          const Machine& machine,
                                          const AdviceTools& tools,
                                          const DiagnoseOptions& options);

// The sentence that answers the question.
std::string VerdictOf(
    const Numbers& numbers,
    const google::protobuf::RepeatedPtrField<proto::DiagnosisCause>& causes);

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_DIAGNOSE_H_
