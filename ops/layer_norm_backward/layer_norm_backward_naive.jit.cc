// A slow kernel for docs/guide/diagnose.md, as a first version often looks: a
// pass over the whole matrix for each formula (lib/norm.h), and down the
// columns, since gamma, dgamma and dbeta have one value a column. `plain` has
// the same formulas in the order of the memory.

#include <vector>

OPTRAIL_JIT_KERNEL(call) {
  const int64_t rows = call.dims[0], cols = call.dims[1];
  const auto* const dy = static_cast<const float*>(call.operands[0]);
  const auto* const x = static_cast<const float*>(call.operands[1]);
  const auto* const gamma = static_cast<const float*>(call.operands[2]);
  const auto* const mean = static_cast<const float*>(call.operands[3]);
  const auto* const rstd = static_cast<const float*>(call.operands[4]);
  auto* const dx = static_cast<float*>(call.operands[5]);
  auto* const dgamma = static_cast<float*>(call.operands[6]);
  auto* const dbeta = static_cast<float*>(call.operands[7]);
  const auto h = [=](int64_t r, int64_t c) {
    return (x[r * cols + c] - mean[r]) * rstd[r];
  };
  std::vector<float> mean_g(rows), mean_gh(rows);
  for (int64_t c = 0; c < cols; ++c) {
    float sum = 0;
    for (int64_t r = 0; r < rows; ++r) sum += dy[r * cols + c];
    dbeta[c] = sum;
  }
  for (int64_t c = 0; c < cols; ++c) {
    float sum = 0;
    for (int64_t r = 0; r < rows; ++r) sum += dy[r * cols + c] * h(r, c);
    dgamma[c] = sum;
  }
  for (int64_t c = 0; c < cols; ++c) {
    for (int64_t r = 0; r < rows; ++r) {
      mean_g[r] += dy[r * cols + c] * gamma[c] / cols;
    }
  }
  for (int64_t c = 0; c < cols; ++c) {
    for (int64_t r = 0; r < rows; ++r) {
      mean_gh[r] += dy[r * cols + c] * gamma[c] * h(r, c) / cols;
    }
  }
  for (int64_t c = 0; c < cols; ++c) {
    for (int64_t r = 0; r < rows; ++r) {
      dx[r * cols + c] = rstd[r] * (dy[r * cols + c] * gamma[c] - mean_g[r] -
                                    h(r, c) * mean_gh[r]);
    }
  }
}
