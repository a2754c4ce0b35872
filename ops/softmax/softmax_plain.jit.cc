// Softmax as one writes it down: what the system's compiler makes of it, with
// everything that it knows of this machine, is what our kernel has to beat.

#include <cmath>

OPTRAIL_JIT_KERNEL(call) {
  const auto* all_x = static_cast<const float*>(call.operands[0]);
  auto* all_y = static_cast<float*>(call.operands[1]);
  const int64_t cols = call.dims[1];
  call.ParallelFor(call.dims[0], [=](int64_t row) {
    const float* x = all_x + row * cols;
    float* y = all_y + row * cols;
    float max = x[0];
    for (int64_t c = 1; c < cols; ++c) max = x[c] > max ? x[c] : max;
    float sum = 0;
    for (int64_t c = 0; c < cols; ++c) {
      y[c] = std::exp(x[c] - max);
      sum += y[c];
    }
    const float scale = 1 / sum;
    for (int64_t c = 0; c < cols; ++c) y[c] *= scale;
  });
}
