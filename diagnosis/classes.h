#ifndef OPTRAIL_DIAGNOSIS_CLASSES_H_
#define OPTRAIL_DIAGNOSIS_CLASSES_H_

// The table of causes: each class is a rule over numbers (numbers.h), below a
// parent. A class holds where all of its conditions do and its parent holds, so
// that a child is a cause only where parent and child both cross their
// thresholds (the top-down method of Yasin, 2014, with experiments in place of
// counters). docs/method/diagnosis.md explains each row.
//
//   for (const proto::DiagnosisCause& cause : Judge(numbers)) {
//     std::cout << cause.chain().rbegin()->says();
//   }

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "diagnosis/classes.pb.h"
#include "diagnosis/numbers.h"
#include "tracker/proto/diagnosis.pb.h"

namespace optrail::diagnosis {

using proto::ClassRule;

// The rows of classes.textproto. Parents come before their children.
const google::protobuf::RepeatedPtrField<ClassRule>& ClassTable();

// Says whether every condition holds; an unknown number holds for none.
bool Holds(const ClassRule& rule, const Numbers& numbers);

// `text` with its numbers filled in.
std::string FillIn(absl::string_view text, const Numbers& numbers);

// Says whether others had the cores of several threads: what they do to threads
// is not told from what the kernel does, so that it has no cause then.
bool IsInconclusive(const Numbers& numbers);

// The chains that end in a cause, the largest recoverable share first. Within
// kHealthyShare of the roofline there are none, and where others had the cores
// of several threads only what the machine causes.
std::vector<proto::DiagnosisCause> Judge(const Numbers& numbers);

// Where the time goes, for what has no cause: the deepest class that holds.
const ClassRule* LimitOf(const Numbers& numbers);
// The names of that class and of others that hold at either end of the numbers'
// intervals: near a threshold the numbers do not tell them apart. The first one
// is LimitOf's; empty where that is null.
std::vector<std::string> PossibleLimits(const Numbers& numbers);

// A kernel that reaches as much of what the hardware allows has nothing to
// gain.
inline constexpr double kHealthyShare = .9;
// The share that the kernel reaches: of the roofline, or of the peak of
// arithmetic alone, which is known without the level that holds the operands.
double ReachedShare(const Numbers& numbers);
// Less than this is no cause worth naming.
inline constexpr double kLeastRecoverable = .1;

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_CLASSES_H_
