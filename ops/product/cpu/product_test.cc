#include "ops/product/cpu/product.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "ops/device/cpu/device.h"
#include "ops/lib/blocks.h"
#include "ops/product/cpu/testing/whole_numbers.h"

namespace optrail::ops {
namespace {

ProductSpec SpecOf(int64_t batch, const ProductSize& size) {
  ProductSpec spec;
  spec.batch = batch;
  spec.size = size;
  spec.blocking.tile = FindRegisterTile(4, 1, 4);
  spec.blocking.mc = spec.blocking.nc = spec.blocking.kc = 128;
  spec.blocking.pack_a = spec.blocking.pack_b = false;
  spec.task_rows = spec.task_columns = 4096;
  return spec;
}

ProductSpec Split(const ProductSize& size, int64_t rows, int64_t columns,
                  int64_t depth_parts) {
  ProductSpec spec = SpecOf(1, size);
  spec.exact_tasks = true;
  spec.task_rows = rows;
  spec.task_columns = columns;
  spec.depth_parts = depth_parts;
  return spec;
}

// Devices stay: to make one takes longer than most of these products.
CpuDevice& DeviceOf(int threads) {
  static auto& devices =
      *new std::map<int, absl::StatusOr<std::unique_ptr<CpuDevice>>>();
  auto at = devices.find(threads);
  if (at == devices.end()) {
    at = devices.emplace(threads, MakeCpuDevice(threads)).first;
  }
  OPTRAIL_CHECK(at->second.ok()) << at->second.status().message();
  return **at->second;
}

// Counts what a call shares out.
class CountedLoops : public ParallelLoops {
 public:
  explicit CountedLoops(CpuDevice& device) : device_(device) {}
  void ParallelFor(int64_t count,
                   absl::FunctionRef<void(int64_t)> body) override {
    most_ = std::max(most_, count);
    device_.ParallelFor(count, body);
  }
  int64_t most() const { return most_; }

 private:
  CpuDevice& device_;
  int64_t most_ = 1;
};

// A call that counts what it shares out, and whose workspace holds stale
// contents that must not show.
class CheckedCall {
 public:
  CheckedCall(CpuDevice& device, const WorkspaceLayout& layout)
      : loops_(device),
        memory_(layout.bytes() / sizeof(float) + 16,
                std::numeric_limits<float>::quiet_NaN()) {
    float* workspace = memory_.data();
    while (!IsAligned(workspace)) ++workspace;
    call_.workspace = workspace;
    call_.stream.loops = &loops_;
  }
  const Call& call() const { return call_; }
  int64_t most() const { return loops_.most(); }

 private:
  CountedLoops loops_;
  std::vector<float> memory_;
  Call call_;
};

// With a bias and relu, unless several tasks share a sum.
void ExpectExact(const ProductSpec& spec, int threads) {
  const auto& [m, n, k] = spec.size;
  const bool transposed = spec.blocking.b_transposed;
  SCOPED_TRACE(absl::StrCat(spec.batch, " of ", m, " x ", n, " x ", k, " on ",
                            threads, transposed ? " transposed" : "",
                            spec.may_pack_b ? " packed" : "", " tasks ",
                            spec.task_rows, " x ", spec.task_columns, " depth ",
                            spec.depth_parts));
  CpuDevice& device = DeviceOf(threads);
  WorkspaceLayout layout;
  const auto product = Product<float>::Plan(spec, device, layout);
  Rng rng(m * 10007 + n * 101 + k);
  const std::vector<float> a = WholeNumbers(spec.batch * m * k, rng);
  const std::vector<float> b = WholeNumbers(spec.batch * k * n, rng);
  const std::vector<float> shift = WholeNumbers(n, rng);
  std::vector<float> c(spec.batch * m * n + 1, kGuard);
  std::vector<float> packed(product.packs_b() ? product.packed_floats() : 0);
  if (product.packs_b()) product.PackB(b.data(), packed.data());
  const CheckedCall checked(device, layout);
  Epilogue epilogue;
  if (spec.depth_parts == 1)
    epilogue = {nullptr, shift.data(), Activation::kRelu};
  product.Run(checked.call(), {a.data()}, {b.data(), packed.data()}, c.data(),
              epilogue);
  if (spec.depth_parts == 1) {
    EXPECT_EQ(checked.most(), product.claims());
  }
  for (int64_t i = 0; i < spec.batch * m; ++i) {
    const float* const right = b.data() + i / m * k * n;
    for (int64_t j = 0; j < n; ++j) {
      float expected = 0;
      for (int64_t p = 0; p < k; ++p) {
        expected += a[i * k + p] * right[transposed ? j * k + p : p * n + j];
      }
      if (spec.depth_parts == 1) expected = std::max(expected + shift[j], 0.0f);
      ASSERT_EQ(c[i * n + j], expected) << "at " << i << ", " << j;
    }
  }
  EXPECT_EQ(c.back(), kGuard);
}

TEST(Product, OfFewColumnsIsExactWhereverBIs) {
  for (const int64_t m : {1, 5, 15, 16, 17, 100, 203}) {
    for (const int64_t n : {1, 2, 3, 5, 8, 9, 15}) {
      for (const int64_t k : {1, 3, 8, 64, 127, 128, 300}) {
        ProductSpec spec = SpecOf(1, {m, n, k});
        ExpectExact(spec, 2);
        spec.may_pack_b = true;
        ExpectExact(spec, 2);
        spec = SpecOf(3, {m, n, k});
        ExpectExact(spec, 2);
        spec.blocking.b_transposed = true;
        ExpectExact(spec, 2);
      }
    }
  }
}

TEST(Product, OfFewColumnsIsExactHoweverItIsSplit) {
  for (const int64_t k : {100, 128, 600}) {
    for (const int64_t n : {1, 7, 8, 15}) {
      const ProductSize size = {601, n, k};
      for (const int64_t rows : {4096, 204, 100}) {
        for (const int64_t parts : {1, 2, 3}) {
          ProductSpec spec = Split(size, rows, 16, parts);
          ExpectExact(spec, 3);
          spec.blocking.b_transposed = true;
          ExpectExact(spec, 2);
        }
        ProductSpec spec = Split(size, rows, 16, 1);
        spec.may_pack_b = true;
        ExpectExact(spec, 2);
      }
    }
  }
}

// One to a few columns beyond whole vectors are computed along long sums.
TEST(Product, OfLastColumnsIsExactHoweverItIsSplit) {
  for (const int64_t n : {17, 19, 33, 70}) {
    for (const int64_t k : {300, 301}) {
      for (const int64_t rows : {4096, 100}) {
        for (const int64_t parts : {1, 2}) {
          ExpectExact(Split({301, n, k}, rows, 128, parts), 2);
        }
      }
      ExpectExact(SpecOf(3, {301, n, k}), 1);
    }
  }
}

TEST(Product, OfBatchesIsExact) {
  for (const int64_t batch : {2, 7, 200}) {
    for (const ProductSize& size : std::vector<ProductSize>{
             {4, 3, 1}, {16, 8, 8}, {9, 33, 17}, {70, 70, 20}}) {
      for (const bool transposed : {false, true}) {
        ProductSpec spec = SpecOf(batch, size);
        spec.blocking.b_transposed = transposed;
        ExpectExact(spec, 2);
        spec.task_rows = 8;
        ExpectExact(spec, 3);
      }
    }
  }
}

std::vector<uint16_t> Rounded(const std::vector<float>& x) {
  const auto count = static_cast<int64_t>(x.size());
  std::vector<uint16_t> rounded(x.size());
  RoundToBf16(x.data(), 1, count, count, rounded.data(), count);
  return rounded;
}

// With a bias and relu.
void ExpectExactBf16(const ProductSpec& spec, int threads) {
  const auto& [m, n, k] = spec.size;
  SCOPED_TRACE(absl::StrCat(m, " x ", n, " x ", k, " on ", threads,
                            spec.may_pack_b ? " packed" : ""));
  CpuDevice& device = DeviceOf(threads);
  WorkspaceLayout layout;
  const auto product = Product<uint16_t>::Plan(spec, device, layout);
  Rng rng(m * 10007 + n * 101 + k);
  const std::vector<float> a = WholeNumbers(m * k, rng);
  const std::vector<float> b = WholeNumbers(k * n, rng);
  const std::vector<float> shift = WholeNumbers(n, rng);
  const std::vector<uint16_t> left = Rounded(a), right = Rounded(b);
  constexpr uint16_t kHalfGuard = 12345;
  std::vector<uint16_t> c(m * n + 1, kHalfGuard);
  std::vector<float> packed(product.packs_b() ? product.packed_floats() : 0);
  if (product.packs_b()) product.PackB(right.data(), packed.data());
  const CheckedCall checked(device, layout);
  Product<uint16_t>::Right columns;
  columns.data = right.data();
  if (product.packs_b()) columns.packed = packed.data();
  product.Run(checked.call(), {left.data()}, columns, c.data(),
              {nullptr, shift.data(), Activation::kRelu});
  std::vector<float> expected(m * n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = shift[j];
      for (int64_t p = 0; p < k; ++p) sum += a[i * k + p] * b[p * n + j];
      expected[i * n + j] = std::max(sum, 0.0f);
    }
  }
  const std::vector<uint16_t> rounded = Rounded(expected);
  for (int64_t i = 0; i < m * n; ++i) {
    ASSERT_EQ(c[i], rounded[i]) << "at " << i / n << ", " << i % n;
  }
  EXPECT_EQ(c.back(), kHalfGuard);
}

TEST(Product, OfFewColumnsOfBf16IsExact) {
  for (const int64_t m : {1, 2, 5, 16, 17, 203, 1500}) {
    for (const int64_t n : {1, 2, 3, 5, 8, 11, 15, 16}) {
      for (const int64_t k : {1, 2, 3, 31, 32, 33, 127, 300}) {
        ProductSpec spec = SpecOf(1, {m, n, k});
        ExpectExactBf16(spec, 1);
        spec.may_pack_b = true;
        ExpectExactBf16(spec, 2);
      }
    }
  }
}

int64_t ClaimsOf(const ProductSpec& spec, int threads) {
  WorkspaceLayout layout;
  return Product<float>::Plan(spec, DeviceOf(threads), layout).claims();
}

TEST(Product, SplitsNothingThatIsSoonDone) {
  EXPECT_EQ(ClaimsOf(Split({4, 3, 1}, 2, 3, 1), 2), 1);
  EXPECT_EQ(ClaimsOf(Split({4, 3, 1}, 4, 3, 2), 2), 1);
  EXPECT_EQ(ClaimsOf(Split({32, 32, 32}, 4, 16, 2), 4), 1);
  EXPECT_EQ(ClaimsOf(Split({512, 512, 512}, 256, 512, 1), 2), 2);
  EXPECT_EQ(ClaimsOf(Split({4, 4, 100000}, 4, 16, 2), 2), 2);
  // Moving floats is work, too.
  EXPECT_EQ(ClaimsOf(Split({100000, 1, 1}, 50000, 1, 1), 2), 2);
  // A layer, and a convolution whose pixels are gathered.
  ProductSpec spec = SpecOf(1, {32, 32, 32});
  spec.task_rows = 8;
  EXPECT_EQ(ClaimsOf(spec, 2), 1);
  spec.may_pack_b = true;
  EXPECT_EQ(ClaimsOf(spec, 2), 1);
  spec.gathers_a = true;
  EXPECT_EQ(ClaimsOf(spec, 2), 1);
  spec.size = {1024, 64, 64};
  spec.task_rows = 4096;
  EXPECT_GE(ClaimsOf(spec, 2), 2);
}

TEST(Product, ClaimsSmallOnesOfABatchTogether) {
  EXPECT_EQ(ClaimsOf(SpecOf(8, {4, 3, 1}), 2), 1);
  // They have few columns.
  const int64_t claims = ClaimsOf(SpecOf(4096, {16, 8, 8}), 2);
  EXPECT_GE(claims, 2);
  EXPECT_LE(claims, 4096 * WorkOf({16, 8, 8}) / kLeastWork);
  EXPECT_EQ(ClaimsOf(SpecOf(6, {128, 128, 128}), 2), 6);
}

TEST(Product, NeedsWorkspaceOnlyToTransposeFewColumns) {
  const auto bytes = [&](const ProductSpec& spec) {
    WorkspaceLayout layout;
    Product<float>::Plan(spec, DeviceOf(1), layout);
    return layout.bytes();
  };
  ProductSpec spec = SpecOf(1, {1000, 4, 1000});
  EXPECT_GE(bytes(spec), 4000 * 4);
  spec.may_pack_b = true;
  EXPECT_EQ(bytes(spec), 0);
  spec.may_pack_b = false;
  spec.blocking.b_transposed = true;
  EXPECT_EQ(bytes(spec), 0);
}

}  // namespace
}  // namespace optrail::ops
