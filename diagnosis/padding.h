#ifndef OPTRAIL_DIAGNOSIS_PADDING_H_
#define OPTRAIL_DIAGNOSIS_PADDING_H_

// MeasurePadding shows lanes that stay empty: vectors, and the lanes of a warp
// on a GPU, run along contiguous dimensions, and one of 2 fills no vector of
// 16. It times the kernel at the same shape with such a dimension rounded up to
// whole vectors.
//
//   MeasurePadding(subject, machine, evaluator_for, options, &numbers);
//   numbers.Find("padding_gain");   // null: no dimension is that short
//
// A dimension that is that short but could not be timed (the padded shape moves
// more than 256 MiB, or the kernel refuses it) leaves the reason in
// numbers.WhyUnknown("padding_gain").
//
// "padded_share" is the share of the roofline that the padded shape reaches.
// "padding_gain" is the share of the time that would go if the shape as it is
// reached as much, beyond what follows from the fixed part of a call. Both
// need the roofline; `numbers` has its share, the time and the fixed share.

#include "diagnosis/experiments.h"
#include "diagnosis/numbers.h"
#include "diagnosis/pairs.h"
#include "suites/worker/evaluator.h"

namespace optrail::diagnosis {

void MeasurePadding(const Subject& subject, const Machine& machine,
                    const EvaluatorFor& evaluator_for,
                    const suites::EvaluationOptions& options, Numbers* numbers);

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_PADDING_H_
