#ifndef OPTRAIL_DIAGNOSIS_ADVICE_H_
#define OPTRAIL_DIAGNOSIS_ADVICE_H_

// AdviceFor says what can be done about a kernel, with the gain that each piece
// of advice predicts. TryAdvice measures what it brings.
//
//   std::vector<proto::DiagnosisAdvice> found =
//       AdviceFor(subject, tools, numbers, causes);
//   for (proto::DiagnosisAdvice& advice : found) {
//     TryAdvice(subject, tools, &advice);   // fills in realised_gain
//   }
//
// A predicted gain is the share of the time that would go. Advice that names
// another config, backend or number of threads was measured beside the kernel,
// and again in a fresh process; advice to change the code is bounded by an
// experiment, or estimated, and says which. Trying measures again, interleaved
// with the kernel as it was, in a fresh process.

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "diagnosis/experiments.h"
#include "suites/tune/search_within.h"
#include "tracker/proto/diagnosis.pb.h"

namespace optrail::diagnosis {

struct AdviceTools {
  EvaluatorFor evaluator_for;
  proto::Hardware hardware;
  int cores = 1;
  // Searches a part of the space and returns the winner; empty: nothing is
  // searched.
  std::function<absl::StatusOr<proto::Config>(const suites::TaskEntry&,
                                              const suites::SearchWithin&)>
      search;
};

// The most to gain first, where a bound counts half, and an estimate and more
// threads a quarter, of what was measured. Measures the other configs, backends
// and numbers of threads that there are.
std::vector<proto::DiagnosisAdvice> AdviceFor(
    const Subject& subject, const AdviceTools& tools, const Numbers& numbers,
    const std::vector<proto::DiagnosisCause>& causes);

// Applies it, where it can be applied without changing code or the machine, and
// measures the kernel beside it. `outcome` says how, or why not.
void TryAdvice(const Subject& subject, const AdviceTools& tools,
               proto::DiagnosisAdvice* advice);

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_ADVICE_H_
