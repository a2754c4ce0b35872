#ifndef OPTRAIL_OPS_CORE_KERNEL_SOURCES_H_
#define OPTRAIL_OPS_CORE_KERNEL_SOURCES_H_

// The part of a kernel's id that the build knows: a hash of what its machine
// code is made from. It knows contents and no places, so that a file can move
// to another folder and every tuned config stays exact.
//
//   const std::string hash = KernelSourcesHash(version, options, contents);
//
// Of sources it takes the kernel's own and their headers (a CUDA kernel's are
// among its own, those of processors are none of it). The operator's
// definition and its reference are no part of it: they decide what is right,
// not what is fast. Registry's KernelId() adds the compiler.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace optrail::ops {

// The text of a source without what changes when it moves: of paths in quotes
// on preprocessor lines (#include, HWY_TARGET_INCLUDE) the last part remains,
// of an include guard nothing.
std::string WithoutPlaces(absl::string_view source);

// The order of `contents` and the names of their files count for nothing.
std::string KernelSourcesHash(int version, absl::string_view options,
                              const std::vector<std::string>& contents);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_KERNEL_SOURCES_H_
