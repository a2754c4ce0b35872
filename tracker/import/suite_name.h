#ifndef OPTRAIL_TRACKER_IMPORT_SUITE_NAME_H_
#define OPTRAIL_TRACKER_IMPORT_SUITE_NAME_H_

// The name of a suite from the name of a file or program, such that the files
// of two commits get the same one: a suite that is named after each file never
// meets itself again.
//
//   StableSuiteName("out/sort_bench-1a2b3c4d-3.json")   // "sort_bench"
//   StableSuiteName("./sort_bench")                     // "sort_bench"
//
// The folder, the extensions and every part between separators (-_. and space)
// that is a number, a date, the beginning of a commit's hash or "v1.2" go.

#include <string>

#include "absl/strings/string_view.h"

namespace optrail::tracker {

// "" if nothing is left.
std::string StableSuiteName(absl::string_view path);

// "Intel(R) Xeon(R) CPU @ 2.2GHz" as part of a hardware id: "intel-xeon-cpu-
// 2-2ghz"; at most 60 characters of [a-z0-9-].
std::string HardwareIdPart(absl::string_view model);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_IMPORT_SUITE_NAME_H_
