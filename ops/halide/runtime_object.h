#ifndef OPTRAIL_OPS_HALIDE_RUNTIME_OBJECT_H_
#define OPTRAIL_OPS_HALIDE_RUNTIME_OBJECT_H_

// Halide's runtime as an object file: what compiled code calls for memory,
// threads and errors. Making it takes as long as ten candidates, so it is made
// when Optrail is built and linked to every one.

#include <cstddef>

namespace optrail::halide {

extern const char kRuntimeObject[];
extern const size_t kRuntimeObjectSize;

}  // namespace optrail::halide

#endif  // OPTRAIL_OPS_HALIDE_RUNTIME_OBJECT_H_
