#include "ops/core/data_type.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

double RoundTrip(proto::DataType type, double value) {
  char bytes[8];
  EncodeValues(type, {value}, bytes);
  double result = 0;
  DecodeValues(type, bytes, 0, absl::MakeSpan(&result, 1));
  return result;
}

TEST(DataType, KeepsWhatATypeCanRepresent) {
  for (const proto::DataType type :
       {proto::F64, proto::F32, proto::F16, proto::BF16}) {
    for (const double value : {0.0, 1.0, -1.0, 0.5, 1.5, -96.0, 0x1.0p-14}) {
      EXPECT_EQ(RoundTrip(type, value), value) << type;
    }
    EXPECT_TRUE(std::isnan(RoundTrip(type, std::nan("")))) << type;
    EXPECT_EQ(RoundTrip(type, -INFINITY), -INFINITY) << type;
  }
  for (const proto::DataType type :
       {proto::I64, proto::I32, proto::I16, proto::I8, proto::U8}) {
    EXPECT_EQ(RoundTrip(type, 100), 100) << type;
  }
}

TEST(DataType, EveryHalfPrecisionNumberSurvives) {
  for (const proto::DataType type : {proto::F16, proto::BF16}) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      const auto in = static_cast<uint16_t>(bits);
      double value = 0;
      DecodeValues(type, &in, 0, absl::MakeSpan(&value, 1));
      if (std::isnan(value)) continue;
      uint16_t out = 0;
      EncodeValues(type, {value}, &out);
      ASSERT_EQ(out, in) << type;
    }
  }
}

TEST(DataType, RoundsToNearestEven) {
  EXPECT_EQ(RoundTrip(proto::F16, 1 + 0x1.0p-11), 1);
  EXPECT_EQ(RoundTrip(proto::F16, 1 + 0x1.8p-10), 1 + 0x1.0p-9);
  EXPECT_EQ(RoundTrip(proto::F16, 2 - 0x1.0p-12), 2);
  EXPECT_EQ(RoundTrip(proto::F16, 65519), 65504);
  EXPECT_EQ(RoundTrip(proto::F16, 65520), INFINITY);
  EXPECT_EQ(RoundTrip(proto::F16, 0x1.0p-25), 0);
  EXPECT_EQ(RoundTrip(proto::F16, 0x1.8p-25), 0x1.0p-24);
  EXPECT_EQ(RoundTrip(proto::BF16, 1 + 0x1.0p-8), 1);
  EXPECT_EQ(RoundTrip(proto::BF16, 1 + 0x1.8p-7), 1 + 0x1.0p-6);
}

TEST(DataType, ClampsToIntegerRanges) {
  EXPECT_EQ(RoundTrip(proto::I8, 1e9), 127);
  EXPECT_EQ(RoundTrip(proto::I8, -INFINITY), -128);
  EXPECT_EQ(RoundTrip(proto::U8, -5), 0);
  EXPECT_EQ(RoundTrip(proto::I64, -INFINITY),
            static_cast<double>(std::numeric_limits<int64_t>::min()));
}

TEST(DataType, DecodesFromTheMiddle) {
  const std::vector<int16_t> values = {1, 2, 3, 4};
  std::vector<double> out(2);
  DecodeValues(proto::I16, values.data(), 1, absl::MakeSpan(out));
  EXPECT_EQ(out, (std::vector<double>{2, 3}));
}

TEST(DataType, KnowsWhatItCannotConvert) {
  EXPECT_TRUE(IsConvertible(proto::BF16));
  EXPECT_FALSE(IsConvertible(proto::F8E4M3));
  EXPECT_FALSE(IsConvertible(proto::DATA_TYPE_UNSPECIFIED));
  EXPECT_TRUE(IsFloat(proto::F16));
  EXPECT_FALSE(IsFloat(proto::I32));
}

}  // namespace
}  // namespace optrail::ops
