// Products by AMX's tiles.

#include "ops/product/amx/product.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ops/device/cpu/device.h"
#include "ops/lib/blocks.h"
#include "ops/product/amx/backend.h"
#include "ops/product/amx/testing/tiles_test_fixture.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

template <class Tiles>
class AmxProductTest : public TilesTest<Tiles> {
 protected:
  static void ExpectComputes(const std::string& op, const std::string& text,
                             int configs) {
    TilesTest<Tiles>::ExpectComputes(
        op, text, configs,
        [&](const proto::Shape& shape, const proto::Config& config,
            CpuDevice& device) -> absl::StatusOr<std::unique_ptr<Invocation>> {
          const auto knobs = AmxKnobsFrom(config);
          if (!knobs.ok()) return knobs.status();
          if (op == "matmul") {
            return BindAmxProduct<Tiles>(shape, *knobs, device);
          }
          Activation activation = Activation::kNone;
          if (!shape.attributes().empty()) {
            activation = shape.attributes(0).variant() == "relu"
                             ? Activation::kRelu
                             : Activation::kGelu;
          }
          return BindAmxLayer<Tiles>(shape, *knobs, activation, device);
        });
  }
};

TYPED_TEST_SUITE(AmxProductTest, AllTiles);

TYPED_TEST(AmxProductTest, ComputesSmallAndRaggedProducts) {
  for (const int m : {1, 2, 15, 16, 17, 31, 32, 33, 65}) {
    for (const int n : {1, 16, 17, 33}) {
      for (const int k : {1, 2, 31, 33, 64}) {
        this->ExpectComputes(
            "matmul", absl::StrCat("m=", m, ",n=", n, ",k=", k, "/bf16"), 2);
      }
    }
  }
}

TYPED_TEST(AmxProductTest, ComputesProductsOfSeveralBlocks) {
  this->ExpectComputes("matmul", "m=130,n=67,k=150/bf16", 12);
  this->ExpectComputes("matmul", "m=3,n=300,k=300/bf16", 12);
  this->ExpectComputes("matmul", "m=300,n=5,k=129/bf16", 12);
  this->ExpectComputes("matmul", "m=1,n=1,k=4096/bf16", 8);
}

TYPED_TEST(AmxProductTest, ComputesLayers) {
  for (const char* activation : {"", "/activation=relu", "/activation=gelu"}) {
    this->ExpectComputes(
        "linear", absl::StrCat("m=37,n=81,k=70", activation, "/bf16"), 6);
    this->ExpectComputes(
        "linear", absl::StrCat("m=40,n=150,k=300", activation, "/bf16"), 6);
    this->ExpectComputes("linear",
                         absl::StrCat("m=1,n=3,k=5", activation, "/bf16"), 2);
  }
}

// Sums of several blocks of steps, whose rows are cut into several blocks, too:
// more than emulation can be asked for, so that whole numbers are compared
// which a double sums up exactly.
TYPED_TEST(AmxProductTest, KeepsPackedBlocksForAllRows) {
  const auto device = MakeCpuDevice(1);
  ASSERT_TRUE(device.ok());
  AmxKnobs knobs;
  knobs.n_panels = 128;  // so that sums of 32 rows alone may wait
  knobs.kc = 64;
  knobs.task_rows = knobs.task_columns = 1 << 20;
  constexpr int64_t kM = 40, kN = 4000, kK = 130;
  const auto shape = tuning::ParseShape("m=40,n=4000,k=130/bf16");
  ASSERT_TRUE(shape.ok());
  auto invocation = BindAmxProduct<TypeParam>(*shape, knobs, **device);
  ASSERT_TRUE(invocation.ok()) << invocation.status();
  auto runnable = Runnable::Create(*std::move(invocation), **device);
  ASSERT_TRUE(runnable.ok()) << runnable.status();
  const auto bf16 = [](int x) {  // of a small whole number
    const auto value = static_cast<float>(x);
    uint16_t bits = 0;
    RoundToBf16(&value, 1, 1, 1, &bits, 1);
    return bits;
  };
  std::vector<uint16_t> a(kM * kK), b(kK * kN), c(kM * kN);
  // One value that is not 0 in every row of A, in another block of steps each.
  for (int64_t i = 0; i < kM; ++i) a[i * kK + (i * 37) % kK] = bf16(i % 5 + 1);
  for (int64_t p = 0; p < kK; ++p) {
    for (int64_t j = 0; j < kN; ++j) b[p * kN + j] = bf16((p * 3 + j) % 41);
  }
  ASSERT_TRUE((*runnable)->Run({a.data(), b.data(), c.data()}).ok());
  for (int64_t i = 0; i < kM; ++i) {
    for (int64_t j = 0; j < kN; ++j) {
      const int expected =
          static_cast<int>((i % 5 + 1) * (((i * 37) % kK * 3 + j) % 41));
      ASSERT_EQ(c[i * kN + j], bf16(expected)) << i << ", " << j;
    }
  }
}

// What is fetched with the last steps of a row lies beyond it, and what fills a
// block up is 0: neither may reach sums as NaN.
TYPED_TEST(AmxProductTest, NanSpoilsItsRowAndColumnAlone) {
  constexpr uint16_t kNan = 0x7FC0, kInfinity = 0x7F80, kOne = 0x3F80;
  constexpr int64_t kM = 35, kN = 19, kK = 37;
  const auto device = MakeCpuDevice(1);
  ASSERT_TRUE(device.ok());
  const auto shape = tuning::ParseShape("m=35,n=19,k=37/bf16");
  ASSERT_TRUE(shape.ok());
  for (const bool pack_a : {false, true}) {
    for (const uint16_t special : {kNan, kInfinity}) {
      AmxKnobs knobs;
      knobs.pack_a = pack_a;
      knobs.task_rows = knobs.task_columns = 1 << 20;
      auto invocation = BindAmxProduct<TypeParam>(*shape, knobs, **device);
      ASSERT_TRUE(invocation.ok()) << invocation.status();
      auto runnable = Runnable::Create(*std::move(invocation), **device);
      ASSERT_TRUE(runnable.ok()) << runnable.status();
      std::vector<uint16_t> a(kM * kK, kOne), b(kK * kN, kOne), c(kM * kN);
      a[20 * kK] = special;  // the row after the end of row 19
      b[36 * kN + 7] = special;
      ASSERT_TRUE((*runnable)->Run({a.data(), b.data(), c.data()}).ok());
      for (int64_t i = 0; i < kM; ++i) {
        for (int64_t j = 0; j < kN; ++j) {
          const bool spoiled = i == 20 || j == 7;
          ASSERT_EQ(c[i * kN + j], spoiled ? special : 0x4214)  // 37
              << i << ", " << j << ", pack_a " << pack_a;
        }
      }
    }
  }
}

TEST(AmxKnobs, AreRefusedWhereOneIsMissing) {
  const auto config = tuning::ParseConfig("kc=64,n_panels=1");
  ASSERT_TRUE(config.ok());
  EXPECT_TRUE(absl::IsInvalidArgument(AmxKnobsFrom(*config).status()));
}

}  // namespace
}  // namespace optrail::ops
