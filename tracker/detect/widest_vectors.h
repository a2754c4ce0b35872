#ifndef OPTRAIL_TRACKER_DETECT_WIDEST_VECTORS_H_
#define OPTRAIL_TRACKER_DETECT_WIDEST_VECTORS_H_

// OPTRAIL_WIDEST_VECTORS compiles a function twice on x86-64, once for AVX2;
// the machine chooses when the program is loaded. Both do the same operations
// in the same order, without fused multiply-add, which rounds otherwise:
// results are the same to the bit.
//
//   OPTRAIL_WIDEST_VECTORS double Sum(absl::Span<const double> values);

#if defined(__x86_64__)
#define OPTRAIL_WIDEST_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define OPTRAIL_WIDEST_VECTORS
#endif

#endif  // OPTRAIL_TRACKER_DETECT_WIDEST_VECTORS_H_
