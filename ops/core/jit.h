#ifndef OPTRAIL_OPS_CORE_JIT_H_
#define OPTRAIL_OPS_CORE_JIT_H_

// What a kernel that is compiled at run time by the system's compiler sees of
// Optrail: this file and nothing else. The compiler includes it by itself.
//
//   OPTRAIL_JIT_KERNEL(call) {
//     const auto* x = static_cast<const float*>(call.operands[0]);
//     call.ParallelFor(rows, [&](int64_t row) { ... });
//   }
//
// Knobs arrive as macros: a knob "unroll" is OPTRAIL_UNROLL, a variant is the
// text after the knob's name, OPTRAIL_STORES_STREAMING. So do the attributes
// that a shape has, those that differ from the operator's defaults:
// OPTRAIL_ATTR_STRIDE, OPTRAIL_ATTR_AXIS_ROWS. Dimensions are values, not
// macros: one compiled config serves all shapes. The file may include what the
// compiler and the C++ library bring, under no condition of a knob.

#include <cstdint>

struct OptrailJitCall {
  void* const* operands;  // in the order of Operator::Operands()
  const int64_t* dims;    // in the order of Operator::dims()
  int threads;
  // body(data, i) for each i in [0, count), spread over threads.
  void (*parallel_for)(void* context, int64_t count,
                       void (*body)(void* data, int64_t i), void* data);
  void* context;

  template <class Body>
  void ParallelFor(int64_t count, const Body& body) const {
    parallel_for(
        context, count,
        [](void* data, int64_t i) { (*static_cast<const Body*>(data))(i); },
        const_cast<Body*>(&body));
  }
};

using OptrailJitKernel = void(const OptrailJitCall&);

#define OPTRAIL_JIT_KERNEL(call)                                             \
  extern "C" __attribute__((visibility("default"))) void optrail_jit_kernel( \
      const OptrailJitCall& call)

#endif  // OPTRAIL_OPS_CORE_JIT_H_
