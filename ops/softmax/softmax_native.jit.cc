// Softmax in plain C++ that a compiler can turn into vectors: lanes are arrays
// of a fixed length, and the exponential is a polynomial without branches. The
// compiler knows the machine (-march=native) and the knobs, which are macros.

#include <algorithm>
#include <cstring>
#include <limits>

namespace {

constexpr int kLanes = OPTRAIL_LANES;

// e^x for x <= 0, flushed to 0 below e^-87.6, where results are denormal. Cody
// and Waite's reduction to |r| <= ln(2) / 2 in two parts, then the polynomial
// of degree 5 of Cephes' expf, which is good to 2 units in the last place.
inline float ExpOfNonPositive(float x) {
  const float clamped = x < -87.6f ? -87.6f : x;
  // Adding 1.5 * 2^23 rounds to an integer in the last bits.
  const float shifted = clamped * 1.44269504f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  float r = clamped - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float e = p * r * r + r + 1.0f;
  int32_t bits;
  std::memcpy(&bits, &shifted, sizeof(bits));
  const int32_t exponent = (bits - 0x4b400000 + 127) << 23;
  float scale;
  std::memcpy(&scale, &exponent, sizeof(scale));
  return x < -87.6f ? 0.0f : e * scale;
}

// NaN and infinities take the way that the formula says; they are rare.
void SlowRow(const float* x, float* y, int64_t cols) {
  float max = -std::numeric_limits<float>::infinity();
  for (int64_t c = 0; c < cols; ++c) max = std::max(max, x[c]);
  float sum = 0;
  for (int64_t c = 0; c < cols; ++c) {
    y[c] = __builtin_expf(x[c] - max);
    sum += y[c];
  }
  for (int64_t c = 0; c < cols; ++c) y[c] /= sum;
}

void Row(const float* x, float* y, int64_t cols) {
  float maxima[kLanes];
  for (float& max : maxima) max = x[0];
  int64_t c = 0;
  for (; c + kLanes <= cols; c += kLanes) {
    for (int i = 0; i < kLanes; ++i) {
      maxima[i] = x[c + i] > maxima[i] ? x[c + i] : maxima[i];
    }
  }
  for (; c < cols; ++c) maxima[0] = x[c] > maxima[0] ? x[c] : maxima[0];
  float max = maxima[0];
  for (const float m : maxima) max = m > max ? m : max;
  if (!(max - max == 0)) return SlowRow(x, y, cols);

  float sums[kLanes] = {};
  for (c = 0; c + kLanes <= cols; c += kLanes) {
    for (int i = 0; i < kLanes; ++i) {
      const float e = ExpOfNonPositive(x[c + i] - max);
      y[c + i] = e;
      sums[i] += e;
    }
  }
  for (; c < cols; ++c) {
    y[c] = ExpOfNonPositive(x[c] - max);
    sums[0] += y[c];
  }
  float sum = 0;
  for (const float s : sums) sum += s;
  const float scale = 1 / sum;
  for (c = 0; c < cols; ++c) y[c] *= scale;
  // A NaN anywhere is no larger than anything and shows in the sum only.
  if (!(sum == sum)) SlowRow(x, y, cols);
}

}  // namespace

OPTRAIL_JIT_KERNEL(call) {
  const auto* x = static_cast<const float*>(call.operands[0]);
  auto* y = static_cast<float*>(call.operands[1]);
  const int64_t rows = call.dims[0];
  const int64_t cols = call.dims[1];
  constexpr int64_t kRows = OPTRAIL_ROWS_PER_TASK;
  call.ParallelFor((rows + kRows - 1) / kRows, [=](int64_t task) {
    const int64_t end = std::min(rows, (task + 1) * kRows);
    for (int64_t row = task * kRows; row < end; ++row) {
      Row(x + row * cols, y + row * cols, cols);
    }
  });
}
