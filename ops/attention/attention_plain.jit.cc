// Attention as one writes it down, a row of scores at a time.

#include <cmath>
#include <vector>

#ifndef OPTRAIL_ATTR_GROUP
#define OPTRAIL_ATTR_GROUP 1
#endif

OPTRAIL_JIT_KERNEL(call) {
  const auto* all_q = static_cast<const float*>(call.operands[0]);
  const auto* all_k = static_cast<const float*>(call.operands[1]);
  const auto* all_v = static_cast<const float*>(call.operands[2]);
  auto* all_y = static_cast<float*>(call.operands[3]);
  const int64_t queries = call.dims[2], keys = call.dims[3], d = call.dims[4];
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  call.ParallelFor(call.dims[0] * call.dims[1] * queries, [=](int64_t row) {
    const int64_t kv = row / queries / OPTRAIL_ATTR_GROUP * keys * d;
    const float* const q = all_q + row * d;
    const float* const k = all_k + kv;
    const float* const v = all_v + kv;
    float* const y = all_y + row * d;
#if defined(OPTRAIL_ATTR_CAUSAL_YES)
    const int64_t seen = keys - queries + row % queries + 1;
#else
    const int64_t seen = keys;
#endif
    std::vector<float> scores(seen);
    float max = -INFINITY;
    for (int64_t j = 0; j < seen; ++j) {
      float score = 0;
      for (int64_t c = 0; c < d; ++c) score += q[c] * k[j * d + c];
      scores[j] = score * scale;
      max = scores[j] > max ? scores[j] : max;
    }
    float sum = 0;
    for (int64_t c = 0; c < d; ++c) y[c] = 0;
    for (int64_t j = 0; j < seen; ++j) {
      const float weight = std::exp(scores[j] - max);
      sum += weight;
      for (int64_t c = 0; c < d; ++c) y[c] += weight * v[j * d + c];
    }
    for (int64_t c = 0; c < d; ++c) y[c] /= sum;
  });
}
