#include "ops/conv2d/convolution_in_place.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "ops/conv2d/convolution.h"
#include "ops/conv2d/line_tiles.h"
#include "ops/device/cpu/device.h"
#include "ops/lib/blocks.h"
#include "ops/lib/cpu_frame.h"
#include "ops/product/cpu/testing/whole_numbers.h"

namespace optrail::ops {
namespace {

ConvolutionSize SizeOf(int64_t h, int64_t w, int64_t c, int64_t k,
                       int64_t filter, int64_t stride, int64_t padding) {
  return {2,
          h,
          w,
          c,
          k,
          filter,
          filter,
          stride,
          padding,
          (h + 2 * padding - filter) / stride + 1,
          (w + 2 * padding - filter) / stride + 1};
}

CpuDevice& Device() {
  static auto& device = *new absl::StatusOr<std::unique_ptr<CpuDevice>>(
      MakeCpuDevice(/*threads=*/2));
  OPTRAIL_CHECK(device.ok()) << device.status().message();
  return **device;
}

template <class T>
std::vector<T> As(const std::vector<float>& values) {
  std::vector<T> to(values.size());
  if constexpr (std::is_same_v<T, float>) {
    to = values;
  } else {
    const auto count = static_cast<int64_t>(values.size());
    RoundToBf16(values.data(), 1, count, count, to.data(), count);
  }
  return to;
}

float Sum(const ConvolutionSize& s, const std::vector<float>& x,
          const std::vector<float>& weights, int64_t pixel, int64_t k) {
  float sum = 0;
  const int64_t q = pixel % s.q, p = pixel / s.q % s.p, n = pixel / s.q / s.p;
  for (int64_t i = 0; i < s.r; ++i) {
    for (int64_t j = 0; j < s.s; ++j) {
      const int64_t row = p * s.stride + i - s.padding;
      const int64_t column = q * s.stride + j - s.padding;
      if (row < 0 || row >= s.h || column < 0 || column >= s.w) continue;
      for (int64_t c = 0; c < s.c; ++c) {
        sum += x[((n * s.h + row) * s.w + column) * s.c + c] *
               weights[((i * s.s + j) * s.c + c) * s.k + k];
      }
    }
  }
  return sum;
}

// All ways of T to end sums.
template <class T>
void ExpectExact(const ConvolutionSize& size) {
  SCOPED_TRACE(absl::StrCat(
      "h=", size.h, ",w=", size.w, ",c=", size.c, ",k=", size.k, ",r=", size.r,
      "/stride=", size.stride, ",padding=", size.padding));
  typename ConvolutionInPlace<T>::Cut cut;
  cut.pixels = 6;
  cut.vectors = 2;
  cut.panels = 2;
  cut.steps = 256;
  cut.task_rows = 64;
  cut.task_columns = 1024;
  WorkspaceLayout layout;
  const auto plan = ConvolutionInPlace<T>::Plan(size, cut, Device(), layout);
  ASSERT_TRUE(plan.ok()) << plan.status();
  Rng rng(size.k * 101 + size.c);
  const std::vector<float> x =
      WholeNumbers(size.n * size.h * size.w * size.c, rng);
  const std::vector<float> weights = WholeNumbers(size.depth() * size.k, rng);
  const std::vector<float> scale = WholeNumbers(size.k, rng);
  const std::vector<float> shift = WholeNumbers(size.k, rng);
  // Stale contents must not show.
  constexpr float kStale = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> memory(layout.bytes() / sizeof(float) + 16, kStale);
  float* workspace = memory.data();
  while (!IsAligned(workspace)) ++workspace;
  std::vector<float> filters(plan->filter_floats() + 16, kStale);
  float* panels = filters.data();
  while (!IsAligned(panels)) ++panels;
  plan->PackFilters(As<T>(weights).data(), panels);
  const std::vector<T> pixels = As<T>(x);
  for (const bool ends : {false, true}) {
    std::vector<float> expected(size.rows() * size.k);
    for (int64_t i = 0; i < size.rows(); ++i) {
      for (int64_t k = 0; k < size.k; ++k) {
        float& sum = expected[i * size.k + k];
        sum = Sum(size, x, weights, i, k);
        if (ends) sum = std::max(sum * scale[k] + shift[k], 0.0f);
      }
    }
    Epilogue epilogue;
    if (ends) epilogue = {scale.data(), shift.data(), Activation::kRelu};
    Call call;
    call.workspace = workspace;
    call.stream.loops = &Device();
    std::vector<T> y(expected.size() + 1);
    y.back() = T{7};
    plan->Run(call, pixels.data(), panels, y.data(), epilogue);
    const std::vector<T> rounded = As<T>(expected);
    for (size_t i = 0; i < rounded.size(); ++i) {
      ASSERT_EQ(y[i], rounded[i]) << "at " << i;
    }
    EXPECT_EQ(y.back(), T{7});
  }
}

// Filters from one to more than a tile has; lines shorter than a tile, as long
// as one and of several; paddings of no, one and more steps; sums of less than
// a vector and of several, whose ends are no whole ones.
template <class T>
void ExpectExactForAll() {
  for (const int64_t k : {1, 2, 3, 4, 7, 8, 15, 17, 65}) {
    for (const int64_t c : {1, 3, 8, 17, 48}) {
      for (const int64_t w : {3, 5, 7, 16}) {
        ExpectExact<T>(SizeOf(4, w, c, k, 3, 1, 1));
        ExpectExact<T>(SizeOf(5, w, c, k, 3, 2, 0));
        ExpectExact<T>(SizeOf(3, w, c, k, 5, 2, 2));
        ExpectExact<T>(SizeOf(5, w, c, k, 1, 2, 0));
        ExpectExact<T>(SizeOf(1, w, c, k, 3, 1, 3));
      }
    }
  }
}

TEST(ConvolutionInPlace, IsExactForEveryRemainder) {
  ExpectExactForAll<float>();
}

TEST(ConvolutionInPlace, IsExactForEveryRemainderOfBf16) {
  ExpectExactForAll<uint16_t>();
}

// Pixels that no cache holds are prefetched, between lines and beside them.
TEST(ConvolutionInPlace, IsExactWherePixelsAreFar) {
  ExpectExact<float>(SizeOf(70, 65, 131, 18, 1, 2, 0));
  ExpectExact<float>(SizeOf(70, 65, 131, 18, 3, 3, 1));
}

// Lines that are shorter than a tile take more filters at a time.
TEST(ConvolutionInPlace, TilesOfShortLinesAreWider) {
  const int64_t lanes = TileLanes();
  const auto columns = [&](int64_t length, int64_t filter_vectors) {
    return FindTilesForFilters(6, 2, /*of_pairs=*/false, length, filter_vectors,
                               /*steps=*/100)
               .tile.columns /
           lanes;
  };
  EXPECT_EQ(columns(/*length=*/12, /*filter_vectors=*/8), 2);
  EXPECT_EQ(columns(/*length=*/3, /*filter_vectors=*/1), 1);
  EXPECT_GT(columns(/*length=*/3, /*filter_vectors=*/12), 2);
}

}  // namespace
}  // namespace optrail::ops
