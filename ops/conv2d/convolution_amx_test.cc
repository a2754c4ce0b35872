// Convolutions by AMX's tiles.

#include "ops/conv2d/convolution_amx.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ops/device/cpu/device.h"
#include "ops/product/amx/testing/tiles_test_fixture.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

constexpr AmxPixels kAllPixels[] = {AmxPixels::kInPlace, AmxPixels::kUnrolled,
                                    AmxPixels::kPatches};

template <class Tiles>
class ConvolutionAmxTest : public TilesTest<Tiles> {
 protected:
  // Both operators.
  static void ExpectComputes(const std::string& text, int configs) {
    for (const std::string op : {"conv2d", "conv_bn_relu"}) {
      TilesTest<Tiles>::ExpectComputes(
          op, text + "/bf16", configs,
          [&](const proto::Shape& shape, const proto::Config& config,
              CpuDevice& device)
              -> absl::StatusOr<std::unique_ptr<Invocation>> {
            const auto knobs = ConvolutionAmxKnobsFrom(config);
            if (!knobs.ok()) return knobs.status();
            return BindConvolutionAmx<Tiles>(shape, *knobs,
                                             op == "conv_bn_relu", device);
          });
    }
  }
};

TYPED_TEST_SUITE(ConvolutionAmxTest, AllTiles);

TYPED_TEST(ConvolutionAmxTest, ComputesFewOfEverything) {
  for (const char* channels : {"c=1,k=1", "c=3,k=17", "c=33,k=16"}) {
    for (const char* filter :
         {"r=1,s=1", "r=1,s=3", "r=3,s=1", "r=2,s=2", "r=3,s=3"}) {
      for (const char* attributes :
           {"", "/padding=1", "/stride=2", "/padding=2,stride=3"}) {
        this->ExpectComputes(
            absl::StrCat("n=2,h=4,w=5,", channels, ",", filter, attributes), 2);
      }
    }
  }
}

// Lines that end within a panel, panels of several lines, filters of several
// blocks, channels of several planes.
TYPED_TEST(ConvolutionAmxTest, ComputesLinesThatFillNoPanel) {
  for (const char* shape : {
           "n=1,h=7,w=7,c=64,k=70,r=3,s=3/padding=1",
           "n=2,h=5,w=39,c=32,k=33,r=3,s=2",
           "n=1,h=9,w=40,c=40,k=20,r=2,s=4/padding=3,stride=2",
           "n=3,h=6,w=1,c=96,k=130,r=2,s=1",
           "n=1,h=3,w=70,c=64,k=65,r=3,s=3/stride=2",
           "n=2,h=11,w=13,c=3,k=40,r=7,s=7/padding=3,stride=2",
           "n=1,h=9,w=14,c=1,k=36,r=5,s=5/padding=2",
           "n=1,h=8,w=11,c=2,k=20,r=4,s=1/padding=1,stride=3",
           "n=1,h=40,w=3,c=5,k=70,r=3,s=3",
           "n=2,h=13,w=14,c=64,k=72,r=1,s=1/stride=2",
           "n=2,h=5,w=13,c=32,k=150,r=1,s=1",
           "n=2,h=5,w=3,c=35,k=34,r=1,s=1/padding=1",
       }) {
    this->ExpectComputes(shape, 4);
  }
}

// Beyond the image and beyond the last channel there are zeros, and what lies
// there in memory must not be read: nor may the sums between two lines be seen.
TYPED_TEST(ConvolutionAmxTest, NanSpoilsWhatItIsPartOfAlone) {
  constexpr uint16_t kNan = 0x7FC0, kOne = 0x3F80;
  const auto device = MakeCpuDevice(1);
  ASSERT_TRUE(device.ok());
  for (const char* text : {"n=1,h=5,w=9,c=3,k=5,r=3,s=3/padding=1/bf16",
                           "n=1,h=9,w=11,c=35,k=5,r=3,s=3/stride=2/bf16",
                           "n=1,h=6,w=9,c=32,k=5,r=2,s=3/bf16"}) {
    const auto shape = tuning::ParseShape(text);
    ASSERT_TRUE(shape.ok());
    const ConvolutionSize s = *ConvolutionSizeOf(*shape);
    for (const AmxPixels pixels : kAllPixels) {
      ConvolutionAmxKnobs knobs;
      knobs.pixels = pixels;
      auto invocation =
          BindConvolutionAmx<TypeParam>(*shape, knobs, false, **device);
      ASSERT_TRUE(invocation.ok()) << invocation.status();
      auto runnable = Runnable::Create(*std::move(invocation), **device);
      ASSERT_TRUE(runnable.ok()) << runnable.status();
      std::vector<uint16_t> x(s.h * s.w * s.c, kOne);
      std::vector<uint16_t> weights(s.depth() * s.k, kOne);
      std::vector<uint16_t> y(s.rows() * s.k);
      constexpr int64_t kLine = 2, kColumn = 4;
      x[(kLine * s.w + kColumn) * s.c + 1] = kNan;
      ASSERT_TRUE((*runnable)->Run({x.data(), weights.data(), y.data()}).ok());
      for (int64_t p = 0; p < s.p; ++p) {
        for (int64_t q = 0; q < s.q; ++q) {
          const int64_t line = kLine - (p * s.stride - s.padding);
          const int64_t column = kColumn - (q * s.stride - s.padding);
          const bool spoiled =
              line >= 0 && line < s.r && column >= 0 && column < s.s;
          for (int64_t k = 0; k < s.k; ++k) {
            ASSERT_EQ(y[(p * s.q + q) * s.k + k] == kNan, spoiled)
                << text << ", " << static_cast<int>(pixels) << ": " << p << ", "
                << q;
          }
        }
      }
    }
  }
}

// Zeros around an image are multiplied, too.
TYPED_TEST(ConvolutionAmxTest, InfiniteWeightsMakeNanAtTheBorder) {
  constexpr uint16_t kInfinity = 0x7F80, kOne = 0x3F80;
  const auto device = MakeCpuDevice(1);
  ASSERT_TRUE(device.ok());
  const auto shape =
      tuning::ParseShape("n=1,h=3,w=3,c=2,k=1,r=3,s=3/padding=1/bf16");
  ASSERT_TRUE(shape.ok());
  for (const AmxPixels pixels : kAllPixels) {
    ConvolutionAmxKnobs knobs;
    knobs.pixels = pixels;
    auto invocation =
        BindConvolutionAmx<TypeParam>(*shape, knobs, false, **device);
    ASSERT_TRUE(invocation.ok()) << invocation.status();
    auto runnable = Runnable::Create(*std::move(invocation), **device);
    ASSERT_TRUE(runnable.ok()) << runnable.status();
    std::vector<uint16_t> x(3 * 3 * 2, kOne), weights(9 * 2, kOne), y(9);
    weights[0] = kInfinity;  // above and to the left
    ASSERT_TRUE((*runnable)->Run({x.data(), weights.data(), y.data()}).ok());
    for (int64_t i = 0; i < 9; ++i) {
      const bool outside = i < 3 || i % 3 == 0;
      EXPECT_EQ((y[i] & 0x7FFF) > kInfinity, outside) << i;
      EXPECT_EQ(y[i] == kInfinity, !outside) << i;
    }
  }
}

TEST(ConvolutionAmxKnobs, AreRefusedWhereOneIsMissing) {
  const auto config = tuning::ParseConfig("pixels=in_place,n_panels=1");
  ASSERT_TRUE(config.ok());
  EXPECT_TRUE(
      absl::IsInvalidArgument(ConvolutionAmxKnobsFrom(*config).status()));
}

}  // namespace
}  // namespace optrail::ops
