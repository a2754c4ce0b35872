#ifndef OPTRAIL_DIAGNOSIS_CASES_H_
#define OPTRAIL_DIAGNOSIS_CASES_H_

// Earlier diagnoses that resemble a new one.
//
//   for (const Similar& one : SimilarCases(diagnosis, earlier)) ...

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tracker/proto/diagnosis.pb.h"

namespace optrail::diagnosis {

struct Similar {
  const proto::Diagnosis* diagnosis = nullptr;
  double distance = 0;  // 0: the same operator, hardware, size and numbers
};

// The nearest first, at most three. The distance is 1 for another operator, .5
// for other hardware, 1 for another first cause, the difference of the
// logarithms (base 10) of the times, and the mean difference of the gains and
// shares that both know. Nothing beyond 1.5 is similar.
std::vector<Similar> SimilarCases(const proto::Diagnosis& diagnosis,
                                  absl::Span<const proto::Diagnosis> earlier);

// Which case, what it was, and the tried advice that brought most:
// "ID: softmax rows=8,cols=8/f32: VERDICT; ADVICE: 40% predicted, 38%
// realised".
std::string CitationOf(const proto::Diagnosis& earlier);

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_CASES_H_
