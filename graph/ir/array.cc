#include "graph/ir/array.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "ops/core/data_type.h"

namespace optrail::graph {
namespace {

// The type that ops::EncodeValues knows for one whose values are doubles.
optrail::proto::DataType RealDataType(proto::ElementType type) {
  switch (type) {
    case proto::ELEMENT_F64:
      return proto::F64;
    case proto::ELEMENT_F32:
      return proto::F32;
    case proto::ELEMENT_F16:
      return proto::F16;
    default:
      return proto::BF16;
  }
}

// Little-endian, as everything that Optrail runs on.
int64_t ReadInteger(const char* from, int64_t bytes, bool is_unsigned) {
  uint64_t value = 0;
  std::memcpy(&value, from, bytes);
  if (bytes == 8 || is_unsigned) return static_cast<int64_t>(value);
  const int shift = static_cast<int>(64 - 8 * bytes);
  return static_cast<int64_t>(value << shift) >> shift;
}

}  // namespace

std::string ElementTypeName(proto::ElementType type) {
  // ELEMENT_F32 is "f32".
  const std::string& name = proto::ElementType_Name(type);
  constexpr int kPrefix = sizeof("ELEMENT_") - 1;
  return name.size() > kPrefix ? absl::AsciiStrToLower(name.substr(kPrefix))
                               : "unknown";
}

int64_t ElementBytes(proto::ElementType type) {
  switch (type) {
    case proto::ELEMENT_F64:
    case proto::ELEMENT_I64:
    case proto::ELEMENT_U64:
      return 8;
    case proto::ELEMENT_F32:
    case proto::ELEMENT_I32:
    case proto::ELEMENT_U32:
      return 4;
    case proto::ELEMENT_F16:
    case proto::ELEMENT_BF16:
    case proto::ELEMENT_I16:
    case proto::ELEMENT_U16:
      return 2;
    default:
      return 1;
  }
}

bool IsReal(proto::ElementType type) {
  return type == proto::ELEMENT_F64 || type == proto::ELEMENT_F32 ||
         type == proto::ELEMENT_F16 || type == proto::ELEMENT_BF16;
}

bool IsUnsigned(proto::ElementType type) {
  return type == proto::ELEMENT_U64 || type == proto::ELEMENT_U32 ||
         type == proto::ELEMENT_U16 || type == proto::ELEMENT_U8 ||
         type == proto::ELEMENT_BOOL;
}

int64_t Wrap(proto::ElementType type, int64_t value) {
  if (type == proto::ELEMENT_BOOL) return value != 0;
  const int64_t bytes = ElementBytes(type);
  if (bytes == 8) return value;
  return ReadInteger(reinterpret_cast<const char*>(&value), bytes,
                     IsUnsigned(type));
}

int64_t TruncateTo(proto::ElementType type, double value) {
  if (type == proto::ELEMENT_BOOL) return value != 0;
  if (std::isnan(value)) return 0;
  const int bits = static_cast<int>(8 * ElementBytes(type));
  const bool is_unsigned = IsUnsigned(type);
  const double low = is_unsigned ? 0 : -std::ldexp(1.0, bits - 1);
  const double end = std::ldexp(1.0, is_unsigned ? bits : bits - 1);
  value = std::trunc(value);
  if (value < low) value = low;
  if (value >= end) {
    return static_cast<int64_t>(std::numeric_limits<uint64_t>::max() >>
                                (64 - bits + (is_unsigned ? 0 : 1)));
  }
  return is_unsigned ? static_cast<int64_t>(static_cast<uint64_t>(value))
                     : static_cast<int64_t>(value);
}

int64_t Elements(const Dims& dims) {
  int64_t elements = 1;
  for (const int64_t dim : dims) elements *= dim;
  return elements;
}

Dims RowMajorStrides(const Dims& dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (int d = static_cast<int>(dims.size()) - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= dims[d];
  }
  return strides;
}

std::string DimsText(const Dims& dims) { return absl::StrJoin(dims, "x"); }

std::string TypeText(const TensorType& type) {
  return absl::StrCat(ElementTypeName(type.type), "[",
                      absl::StrJoin(type.dims, ","), "]");
}

absl::StatusOr<Dims> Broadcast(const Dims& a, const Dims& b) {
  const size_t rank = std::max(a.size(), b.size());
  Dims dims(rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = i < rank - a.size() ? 1 : a[i - (rank - a.size())];
    const int64_t y = i < rank - b.size() ? 1 : b[i - (rank - b.size())];
    if (x != y && x != 1 && y != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("[", absl::StrJoin(a, ","), "] and [",
                       absl::StrJoin(b, ","), "] do not broadcast"));
    }
    dims[i] = x == 1 ? y : x;
  }
  return dims;
}

Dims BroadcastStrides(const Dims& from, const Dims& to) {
  const Dims own = RowMajorStrides(from);
  Dims strides(to.size(), 0);
  const size_t skip = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) {
    strides[skip + d] = from[d] == 1 ? 0 : own[d];
  }
  return strides;
}

Array Array::Zeros(const TensorType& type) {
  Array array;
  array.type = type;
  if (IsReal(type.type)) {
    array.reals.resize(Elements(type.dims));
  } else {
    array.integers.resize(Elements(type.dims));
  }
  return array;
}

Array Array::Integers(proto::ElementType type, const Dims& dims,
                      std::vector<int64_t> values) {
  OPTRAIL_CHECK(!IsReal(type) && values.size() == Elements(dims));
  Array array;
  array.type = {type, dims};
  array.integers = std::move(values);
  return array;
}

Array Array::Reals(proto::ElementType type, const Dims& dims,
                   std::vector<double> values) {
  OPTRAIL_CHECK(IsReal(type) && values.size() == Elements(dims));
  Array array;
  array.type = {type, dims};
  array.reals = std::move(values);
  return array;
}

absl::StatusOr<Array> Array::Decode(const TensorType& type,
                                    absl::string_view bytes) {
  if (static_cast<int64_t>(bytes.size()) != type.bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat(bytes.size(), " bytes of values; expected ", type.bytes(),
                     " for ", TypeText(type)));
  }
  Array array = Zeros(type);
  if (array.is_real()) {
    ops::DecodeValues(RealDataType(type.type), bytes.data(), 0,
                      absl::MakeSpan(array.reals));
    return array;
  }
  const int64_t size = ElementBytes(type.type);
  const bool is_unsigned = IsUnsigned(type.type);
  for (size_t i = 0; i < array.integers.size(); ++i) {
    array.integers[i] = Wrap(
        type.type, ReadInteger(bytes.data() + i * size, size, is_unsigned));
  }
  return array;
}

std::string Array::Encode() const {
  std::string bytes(type.bytes(), '\0');
  if (is_real()) {
    ops::EncodeValues(RealDataType(type.type), reals, bytes.data());
    return bytes;
  }
  const int64_t size = ElementBytes(type.type);
  for (size_t i = 0; i < integers.size(); ++i) {
    std::memcpy(bytes.data() + i * size, &integers[i], size);
  }
  return bytes;
}

}  // namespace optrail::graph
