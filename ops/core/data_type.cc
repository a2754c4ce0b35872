#include "ops/core/data_type.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

template <typename T>
T FromDouble(double value) {
  if constexpr (std::is_integral_v<T>) {
    constexpr double kMin = static_cast<double>(std::numeric_limits<T>::min());
    constexpr double kMax = static_cast<double>(std::numeric_limits<T>::max());
    if (std::isnan(value)) return 0;
    if (value <= kMin) return std::numeric_limits<T>::min();
    if (value >= kMax) return std::numeric_limits<T>::max();
  }
  return static_cast<T>(value);
}

template <>
Bf16 FromDouble<Bf16>(double value) {
  const float f = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof(bits));
  if (std::isnan(f)) return {static_cast<uint16_t>((bits >> 16) | 0x40)};
  bits += 0x7fff + ((bits >> 16) & 1);  // to nearest, ties to even
  return {static_cast<uint16_t>(bits >> 16)};
}

template <>
F16 FromDouble<F16>(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return {static_cast<uint16_t>(sign | 0x7e00)};
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return {sign};
  if (magnitude >= 65520) return {static_cast<uint16_t>(sign | 0x7c00)};
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = m * 2^exponent, m >= 1/2
  // The distance between neighbours is 2^(exponent-11), at least 2^-24.
  const int quantum = std::max(exponent - 11, -24);
  const auto units =
      static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, -quantum)));
  // Normal numbers have units in [1024, 2048], subnormal ones less. Adding
  // the fields instead of masking lets the leading bit of units, and a carry of
  // the rounding, raise the exponent field.
  const auto exponent_field = static_cast<uint32_t>(quantum + 24);
  return {static_cast<uint16_t>(sign + (exponent_field << 10) + units)};
}

template <typename T>
double ToDouble(T value) {
  return static_cast<double>(value);
}

template <>
double ToDouble<Bf16>(Bf16 value) {
  const uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  float f;
  std::memcpy(&f, &bits, sizeof(f));
  return f;
}

template <>
double ToDouble<F16>(F16 value) {
  const double sign = (value.bits & 0x8000) ? -1.0 : 1.0;
  const int exponent = (value.bits >> 10) & 31;
  const int mantissa = value.bits & 1023;
  if (exponent == 31) {
    return mantissa ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(mantissa + 1024, exponent - 25);
}

template <typename T>
void Encode(absl::Span<const double> values, void* out) {
  char* bytes = static_cast<char*>(out);
  for (double value : values) {
    const T encoded = FromDouble<T>(value);
    std::memcpy(bytes, &encoded, sizeof(T));
    bytes += sizeof(T);
  }
}

template <typename T>
void Decode(const void* in, int64_t begin, absl::Span<double> out) {
  const char* bytes = static_cast<const char*>(in) + begin * sizeof(T);
  for (double& value : out) {
    T encoded;
    std::memcpy(&encoded, bytes, sizeof(T));
    value = ToDouble<T>(encoded);
    bytes += sizeof(T);
  }
}

// Calls visitor.operator()<T>() with the C++ type that stores `type`; false if
// there is none.
template <typename Visitor>
bool VisitType(proto::DataType type, const Visitor& visitor) {
  switch (type) {
    case proto::F64:
      return visitor(double{}), true;
    case proto::F32:
      return visitor(float{}), true;
    case proto::F16:
      return visitor(F16{}), true;
    case proto::BF16:
      return visitor(Bf16{}), true;
    case proto::I64:
      return visitor(int64_t{}), true;
    case proto::I32:
      return visitor(int32_t{}), true;
    case proto::I16:
      return visitor(int16_t{}), true;
    case proto::I8:
      return visitor(int8_t{}), true;
    case proto::U8:
    case proto::BOOL:
      return visitor(uint8_t{}), true;
    default:
      return false;
  }
}

}  // namespace

bool IsConvertible(proto::DataType type) {
  return VisitType(type, [](auto) {});
}

bool IsFloat(proto::DataType type) {
  switch (type) {
    case proto::F64:
    case proto::F32:
    case proto::F16:
    case proto::BF16:
    case proto::F8E4M3:
    case proto::F8E5M2:
      return true;
    default:
      return false;
  }
}

Rounding RoundingOf(proto::DataType type) {
  // Half a unit in the last place of the significand (24, 11, 8 bits), and half
  // the smallest denormal.
  switch (type) {
    case proto::F64:
      return {0x1.0p-53, 0x1.0p-1074};
    case proto::F32:
      return {0x1.0p-24, 0x1.0p-150};
    case proto::F16:
      return {0x1.0p-11, 0x1.0p-25};
    case proto::BF16:
      return {0x1.0p-8, 0x1.0p-134};
    default:
      return {};
  }
}

void EncodeValues(proto::DataType type, absl::Span<const double> values,
                  void* out) {
  OPTRAIL_CHECK(
      VisitType(type, [&](auto zero) { Encode<decltype(zero)>(values, out); }))
      << "no conversion to " << tuning::DataTypeName(type);
}

void DecodeValues(proto::DataType type, const void* in, int64_t begin,
                  absl::Span<double> out) {
  OPTRAIL_CHECK(VisitType(
      type, [&](auto zero) { Decode<decltype(zero)>(in, begin, out); }))
      << "no conversion from " << tuning::DataTypeName(type);
}

}  // namespace optrail::ops
