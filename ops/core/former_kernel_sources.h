#ifndef OPTRAIL_OPS_CORE_FORMER_KERNEL_SOURCES_H_
#define OPTRAIL_OPS_CORE_FORMER_KERNEL_SOURCES_H_

// The id that a kernel had before ids came from the walk along includes
// (kernel_sources.h). What was tuned, recorded or begun under it stays good for
// one release; a later one deletes this file, its table
// (former_kernel_sources.txt) and everything that says "former".
//
//   const std::vector<std::string> paths =
//       FormerFilesOf(table, "softmax", "cpu");
//   const std::string hash =
//       FormerKernelSourcesHash(version, options, contents_of_paths);

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace optrail::ops {

// The files that the table lists for a backend, with repetitions; empty if it
// lists none.
std::vector<std::string> FormerFilesOf(absl::string_view table,
                                       absl::string_view op,
                                       absl::string_view backend);

// The text of a source without what changes when it moves: of paths in quotes
// on preprocessor lines the last part remains, of an include guard nothing.
// Comments and whitespace remain.
std::string WithoutPlaces(absl::string_view source);

// The order of `contents` and the names of their files count for nothing.
std::string FormerKernelSourcesHash(int version, absl::string_view options,
                                    const std::vector<std::string>& contents);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_FORMER_KERNEL_SOURCES_H_
