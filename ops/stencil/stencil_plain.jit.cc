// The chain as one writes it down: a step after the other, over everything.

#include <utility>
#include <vector>

#ifndef OPTRAIL_ATTR_STEPS
#define OPTRAIL_ATTR_STEPS 2
#endif

OPTRAIL_JIT_KERNEL(call) {
  const auto* weights = static_cast<const float*>(call.operands[1]);
  const float* x = static_cast<const float*>(call.operands[0]);
  std::vector<float> from, to;
  for (int64_t t = 1; t <= OPTRAIL_ATTR_STEPS; ++t) {
    const int64_t rows = call.dims[0] - 2 * t, cols = call.dims[1] - 2 * t;
    float* y = static_cast<float*>(call.operands[2]);
    if (t < OPTRAIL_ATTR_STEPS) {
      to.resize(rows * cols);
      y = to.data();
    }
    call.ParallelFor(rows, [=](int64_t i) {
      for (int64_t j = 0; j < cols; ++j) {
        float sum = 0;
        for (int64_t tap = 0; tap < 9; ++tap) {
          sum += weights[tap] * x[(i + tap / 3) * (cols + 2) + j + tap % 3];
        }
        y[i * cols + j] = sum;
      }
    });
    std::swap(from, to);
    x = from.data();
  }
}
