#ifndef OPTRAIL_DIAGNOSIS_DERIVED_H_
#define OPTRAIL_DIAGNOSIS_DERIVED_H_

// Numbers that follow from others: shares and what a cause would give back. The
// estimates among them say so.
//
//   AddDerived(hardware, threads, &numbers);
//   numbers.Find("passes");

#include "diagnosis/numbers.h"
#include "tuning/proto/context.pb.h"

namespace optrail::diagnosis {

// Says whether observed parallel loops took longer than whole calls do: others
// had the cores meanwhile.
bool LoopsTakeLonger(const Numbers& numbers);

void AddDerived(const proto::Hardware& hardware, int threads, Numbers* numbers);

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_DERIVED_H_
