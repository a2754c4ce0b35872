#ifndef OPTRAIL_OPS_HALIDE_ENTRY_POINT_H_
#define OPTRAIL_OPS_HALIDE_ENTRY_POINT_H_

// The name of compiled code, between the compiler and who loads what it made.

namespace optrail::halide {

inline constexpr char kEntryPoint[] = "optrail_halide_kernel";

}  // namespace optrail::halide

#endif  // OPTRAIL_OPS_HALIDE_ENTRY_POINT_H_
