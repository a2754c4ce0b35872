#ifndef OPTRAIL_GRAPH_IR_ARRAY_H_
#define OPTRAIL_GRAPH_IR_ARRAY_H_

// Array holds the values of a tensor for references and constant folding:
// reals in double precision, everything else in 64-bit integers.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const Array x,
//                            Array::Decode({proto::ELEMENT_F32, {2, 3}},
//                            bytes));
//   Use(x.reals[0]);
//   const std::string again = x.Encode();   // rounds to nearest
//
// Arrays are dense and row-major. They are not what runs fast.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/proto/graph.pb.h"

namespace optrail::graph {

using Dims = std::vector<int64_t>;

// "f32", "i64", "bool".
std::string ElementTypeName(proto::ElementType type);
int64_t ElementBytes(proto::ElementType type);
// True if values are kept as doubles.
bool IsReal(proto::ElementType type);
bool IsUnsigned(proto::ElementType type);
// What a value of an integer type is after it overflowed: two's complement; a
// boolean is 0 or 1. Values of u64 are kept with the same bits.
int64_t Wrap(proto::ElementType type, int64_t value);
// Converts `value` to an integer type: rounds towards zero, and takes the
// nearest value that exists if `value` is out of range.
int64_t TruncateTo(proto::ElementType type, double value);

// The most elements of a dense tensor. A larger one is refused when a graph is
// built, so that products of dimensions never overflow.
inline constexpr int64_t kMostElements = int64_t{1} << 40;
int64_t Elements(const Dims& dims);
// In elements.
Dims RowMajorStrides(const Dims& dims);
// "2x3", "" for a scalar.
std::string DimsText(const Dims& dims);
// The dims of an elementwise result (NumPy's rule): InvalidArgument where they
// do not fit.
absl::StatusOr<Dims> Broadcast(const Dims& a, const Dims& b);
// Strides with which a tensor of dims `from` is read along `to`: 0 where it is
// repeated. `from` broadcasts to `to`.
Dims BroadcastStrides(const Dims& from, const Dims& to);

struct TensorType {
  proto::ElementType type = proto::ELEMENT_TYPE_UNSPECIFIED;
  Dims dims;

  int64_t bytes() const { return Elements(dims) * ElementBytes(type); }
  bool operator==(const TensorType& other) const {
    return type == other.type && dims == other.dims;
  }
};

// "f32[2,3]".
std::string TypeText(const TensorType& type);

struct Array {
  TensorType type;
  std::vector<double> reals;      // where IsReal(type.type)
  std::vector<int64_t> integers;  // elsewhere

  static Array Zeros(const TensorType& type);
  static Array Integers(proto::ElementType type, const Dims& dims,
                        std::vector<int64_t> values);
  static Array Reals(proto::ElementType type, const Dims& dims,
                     std::vector<double> values);

  // InvalidArgument where the bytes are not as many as the type needs.
  static absl::StatusOr<Array> Decode(const TensorType& type,
                                      absl::string_view bytes);
  std::string Encode() const;

  bool is_real() const { return IsReal(type.type); }
  int64_t elements() const { return Elements(type.dims); }
  double At(int64_t i) const {
    return is_real() ? reals[i] : static_cast<double>(integers[i]);
  }
  // Element i becomes element `from` of `other`, which is of the same type.
  void Copy(int64_t i, const Array& other, int64_t from) {
    if (is_real()) {
      reals[i] = other.reals[from];
    } else {
      integers[i] = other.integers[from];
    }
  }
};

// Calls body(position, indices) for every element of `dims` in row-major order.
// `indices` holds, for each of `strides`, the element that it leads to.
template <class Body>
void ForEachElement(const Dims& dims, const std::vector<Dims>& strides,
                    const Body& body) {
  const int rank = static_cast<int>(dims.size());
  const int64_t count = Elements(dims);
  Dims place(rank, 0);
  std::vector<int64_t> indices(strides.size(), 0);
  for (int64_t position = 0; position < count; ++position) {
    body(position, indices);
    for (int d = rank - 1; d >= 0; --d) {
      ++place[d];
      for (size_t s = 0; s < strides.size(); ++s) indices[s] += strides[s][d];
      if (place[d] < dims[d]) break;
      for (size_t s = 0; s < strides.size(); ++s) {
        indices[s] -= strides[s][d] * dims[d];
      }
      place[d] = 0;
    }
  }
}

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_IR_ARRAY_H_
