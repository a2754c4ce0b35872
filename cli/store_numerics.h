#ifndef OPTRAIL_CLI_STORE_NUMERICS_H_
#define OPTRAIL_CLI_STORE_NUMERICS_H_

// `optrail store diff --numerics=same` fails where a tuned config changes bits.
//
//   return JudgeNumerics(differences);
//
// Reads --store. Thread safety: called by the main thread alone.

#include <vector>

#include "tuning/store/store_files.h"

namespace optrail::cli {

// Says on standard error which entries of tuned configs change the bits of
// results, and the commands that find others. Returns the exit code: 1 if one
// changes them, 3 if of one nobody knows, else 0.
int JudgeNumerics(const std::vector<const tuning::StoreDifference*>& tuned);

}  // namespace optrail::cli

#endif  // OPTRAIL_CLI_STORE_NUMERICS_H_
