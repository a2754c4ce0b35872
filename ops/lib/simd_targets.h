// Compiles what follows once per SIMD target, by including the file again that
// HWY_TARGET_INCLUDE names:
//
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "ops/relu/relu_cpu.cc"
//   #include "ops/lib/simd_targets.h"
//
// Targets between plain C++ and AVX2 cost compile time and serve hardly anyone.
// No guard: every target includes it.

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#include "hwy/foreach_target.h"
//
#include "hwy/cache_control.h"
#include "hwy/highway.h"
