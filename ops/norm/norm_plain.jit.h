// The norms and their gradients as one writes them down (lib/norm.h has the
// formulas), for layer_norm and, not centred, rms_norm.

#include <cmath>

// Sums in any order, so that the compiler makes vectors of them; NaN and
// denormals stay what they are.
#pragma GCC optimize("associative-math,no-signed-zeros,no-trapping-math")

namespace {

template <bool kCentred>
void NormalisePlainly(const OptrailJitCall& call) {
  const int64_t cols = call.dims[1];
  const auto* const all_x = static_cast<const float*>(call.operands[0]);
  const auto* const gamma = static_cast<const float*>(call.operands[1]);
  const auto* const beta =
      kCentred ? static_cast<const float*>(call.operands[2]) : nullptr;
  void* const* const results = call.operands + (kCentred ? 3 : 2);
  call.ParallelFor(call.dims[0], [=](int64_t row) {
    const float* const x = all_x + row * cols;
    float* const y = static_cast<float*>(results[0]) + row * cols;
    float mean = 0;
    if (kCentred) {
      for (int64_t c = 0; c < cols; ++c) mean += x[c];
      mean /= static_cast<float>(cols);
    }
    float squares = 0;
    for (int64_t c = 0; c < cols; ++c) squares += (x[c] - mean) * (x[c] - mean);
    const float rstd =
        1 / std::sqrt(squares / static_cast<float>(cols) + 1e-5f);
    for (int64_t c = 0; c < cols; ++c) {
      y[c] = gamma[c] * ((x[c] - mean) * rstd) + (kCentred ? beta[c] : 0.0f);
    }
#ifdef OPTRAIL_ATTR_STATISTICS_WRITTEN
    if (kCentred) static_cast<float*>(results[1])[row] = mean;
    static_cast<float*>(results[kCentred ? 2 : 1])[row] = rstd;
#endif
  });
}

template <bool kCentred>
void DeriveNormPlainly(const OptrailJitCall& call) {
  const int64_t rows = call.dims[0];
  const int64_t cols = call.dims[1];
  const auto* const all_dy = static_cast<const float*>(call.operands[0]);
  const auto* const all_x = static_cast<const float*>(call.operands[1]);
  const auto* const gamma = static_cast<const float*>(call.operands[2]);
  const auto* const means =
      kCentred ? static_cast<const float*>(call.operands[3]) : nullptr;
  const auto* const rstds =
      static_cast<const float*>(call.operands[kCentred ? 4 : 3]);
  void* const* const results = call.operands + (kCentred ? 5 : 4);
  auto* const all_dx = static_cast<float*>(results[0]);
  auto* const dgamma = static_cast<float*>(results[1]);
  auto* const dbeta = kCentred ? static_cast<float*>(results[2]) : nullptr;
  call.ParallelFor(rows, [=](int64_t row) {
    const float* const dy = all_dy + row * cols;
    const float* const x = all_x + row * cols;
    float* const dx = all_dx + row * cols;
    const float mean = kCentred ? means[row] : 0.0f;
    const float rstd = rstds[row];
    float mean_g = 0;
    float mean_gh = 0;
    for (int64_t c = 0; c < cols; ++c) {
      const float g = dy[c] * gamma[c];
      mean_g += g;
      mean_gh += g * ((x[c] - mean) * rstd);
    }
    mean_g = kCentred ? mean_g / static_cast<float>(cols) : 0.0f;
    mean_gh /= static_cast<float>(cols);
    for (int64_t c = 0; c < cols; ++c) {
      const float h = (x[c] - mean) * rstd;
      dx[c] = rstd * (dy[c] * gamma[c] - mean_g - h * mean_gh);
    }
  });
  constexpr int64_t kBlock = 512;
  call.ParallelFor((cols + kBlock - 1) / kBlock, [=](int64_t block) {
    const int64_t begin = block * kBlock;
    const int64_t end = cols - begin < kBlock ? cols : begin + kBlock;
    for (int64_t c = begin; c < end; ++c) {
      dgamma[c] = 0;
      if (kCentred) dbeta[c] = 0;
    }
    for (int64_t r = 0; r < rows; ++r) {
      const float mean = kCentred ? means[r] : 0.0f;
      for (int64_t c = begin; c < end; ++c) {
        const float v = all_dy[r * cols + c];
        dgamma[c] += v * ((all_x[r * cols + c] - mean) * rstds[r]);
        if (kCentred) dbeta[c] += v;
      }
    }
  });
}

}  // namespace
