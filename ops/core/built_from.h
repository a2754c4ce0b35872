#ifndef OPTRAIL_OPS_CORE_BUILT_FROM_H_
#define OPTRAIL_OPS_CORE_BUILT_FROM_H_

// What a binary's kernels were built from, so that one that is older than the
// work tree is noticed: its readings would be filed under a commit that it is
// not of. The `operator` macro registers it.
//
//   for (const std::string& path :
//        ChangedSources("softmax", "cpu", WorkspaceDirectory())) {
//     std::cerr << path << " has changed since this was built\n";
//   }
//
// It knows a kernel's declared files, not what stands around them: the
// stopwatch, the device, the compiler.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace optrail::ops {

struct BuiltFile {
  std::string path;         // in the workspace
  std::string fingerprint;  // of the contents
};

// Before main() only.
void AddBuiltFrom(absl::string_view op, absl::string_view backend,
                  std::vector<BuiltFile> files);

// Empty for what the macro did not declare.
const std::vector<BuiltFile>& BuiltFrom(absl::string_view op,
                                        absl::string_view backend);

// Those of BuiltFrom() that are in `workspace` with other contents. A binary
// may be far from its sources: what is not there says nothing.
std::vector<std::string> ChangedSources(absl::string_view op,
                                        absl::string_view backend,
                                        const std::string& workspace);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_BUILT_FROM_H_
