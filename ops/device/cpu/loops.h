#ifndef OPTRAIL_OPS_DEVICE_CPU_LOOPS_H_
#define OPTRAIL_OPS_DEVICE_CPU_LOOPS_H_

// The loops that show what a core and its memory can do, on the widest vectors
// that kernels use: ceilings.h looks for their best rates, calibration.h for
// what they take at the moment.
//
//   const double flop = MultiplyAddLoop(50000);
//   ReadLoop(buffer, floats);  // floats / seconds * 4: bytes per second
//
// They are no benchmarks: nothing is timed here.

#include <cstdint>

namespace optrail::ops {

// Makes twelve independent chains of fused multiply-adds in single precision
// advance `turns` times: enough to hide a latency of six cycles on two units.
// Returns the FLOP done.
double MultiplyAddLoop(int64_t turns);

// A chain of dependent integer multiply-adds, kept in registers: only the
// clock rate of the core and who else has it decide.
void DependentLoop(int64_t turns);

// `from` and `to` are aligned to 64 bytes, `floats` is a multiple of 256.
// Copies are streaming stores, past the caches.
void ReadLoop(const float* from, int64_t floats);
void CopyLoop(const float* from, int64_t floats, float* to);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CPU_LOOPS_H_
