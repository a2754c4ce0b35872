#ifndef OPTRAIL_OPS_PRODUCT_CPU_TESTING_WHOLE_NUMBERS_H_
#define OPTRAIL_OPS_PRODUCT_CPU_TESTING_WHOLE_NUMBERS_H_

// For tests of products: operands whose sums are exact in any order, and what
// stands around a result that must not be written.
//
//   Rng rng(1);
//   const std::vector<float> a = WholeNumbers(m * k, rng);
//   std::vector<float> c(m * n + 1, kGuard);

#include <cstdint>
#include <vector>

#include "base/random.h"

namespace optrail::ops {

inline constexpr float kGuard = 12345.0f;

// Each from -4 to 4.
inline std::vector<float> WholeNumbers(int64_t count, Rng& rng) {
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(rng.UniformInt(9) - 4);
  return values;
}

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_CPU_TESTING_WHOLE_NUMBERS_H_
