#ifndef OPTRAIL_TRACKER_COMPARE_DECISION_H_
#define OPTRAIL_TRACKER_COMPARE_DECISION_H_

// The statistics of a comparison: what is slower, faster, unchanged or cannot
// be told, of rows that have readings on both sides (docs/method/gating.md).
//
// For compare.cc, which sorts out everything else.

#include <map>
#include <string>
#include <vector>

#include "tracker/compare/compare.h"

namespace optrail::tracker {

// PriorKey of the candidate -> that of the baseline, which differs where a
// benchmark was renamed.
using ComparedRows = std::map<std::string, std::string>;

// The part of a process' samples that is judged.
enum class SamplePart { kFastest, kMedian, kUpperQuartile };

// Makes a row whose fastest samples did not become slower one that is slower in
// most samples, where `part` rose by `log_shift` more than the fastest.
void NoteShape(SamplePart part, double log_shift, Row* row);

// A row shows medians, and its ratio is that of the fastest samples: where the
// two moved apart, its reason says both. Once the row's values are those of the
// runs that were used.
void NoteMedians(Row* row);

// Decides the rows of `comparison` that `compared` names. Both sides are in
// series order.
void DecideRows(const std::vector<const proto::Run*>& baseline,
                const std::vector<const proto::Run*>& candidate,
                const CompareOptions& options, const ComparedRows& compared,
                Comparison* comparison);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_DECISION_H_
