// Sums of products: matmul, conv, conv_transpose, and linear, which fusion
// makes.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "graph/ir/elementwise.h"
#include "graph/ir/ops.h"

namespace optrail::graph {
namespace {

absl::Status SameTypes(const TypeList& inputs) {
  for (const TensorType* input : inputs) {
    if (input != nullptr && input->type != inputs[0]->type) {
      return absl::InvalidArgumentError(absl::StrCat(
          "types differ: ", TypeText(*inputs[0]), " and ", TypeText(*input)));
    }
  }
  return absl::OkStatus();
}

absl::Status RealTypes(const TypeList& inputs) {
  OPTRAIL_RETURN_IF_ERROR(SameTypes(inputs));
  if (IsReal(inputs[0]->type)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("is not defined for ", ElementTypeName(inputs[0]->type)));
}

// matmul: the last two dimensions are multiplied, those before broadcast. A
// vector is a row on the left and a column on the right.
struct MatmulShape {
  Dims batch;  // of the result
  Dims a, b;   // with two dimensions at least
  int64_t m = 0, n = 0, k = 0;
};

absl::StatusOr<MatmulShape> ShapeOfMatmul(const TensorType& a,
                                          const TensorType& b) {
  MatmulShape shape{{}, a.dims, b.dims};
  if (a.dims.empty() || b.dims.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        TypeText(a), " x ", TypeText(b), ": a scalar has no columns"));
  }
  if (shape.a.size() == 1) shape.a.insert(shape.a.begin(), 1);
  if (shape.b.size() == 1) shape.b.push_back(1);
  const size_t p = shape.a.size(), q = shape.b.size();
  shape.m = shape.a[p - 2];
  shape.k = shape.a[p - 1];
  shape.n = shape.b[q - 1];
  if (shape.b[q - 2] != shape.k) {
    return absl::InvalidArgumentError(
        absl::StrCat(TypeText(a), " x ", TypeText(b), ": ", shape.k,
                     " columns and ", shape.b[q - 2], " rows"));
  }
  OPTRAIL_ASSIGN_OR_RETURN(shape.batch,
                           Broadcast(Dims(shape.a.begin(), shape.a.end() - 2),
                                     Dims(shape.b.begin(), shape.b.end() - 2)));
  return shape;
}

Types InferMatmul(const Node& node, const TypeList& inputs) {
  OPTRAIL_RETURN_IF_ERROR(SameTypes(inputs));
  OPTRAIL_ASSIGN_OR_RETURN(const MatmulShape shape,
                           ShapeOfMatmul(*inputs[0], *inputs[1]));
  TensorType type{inputs[0]->type, shape.batch};
  if (inputs[0]->dims.size() > 1) type.dims.push_back(shape.m);
  if (inputs[1]->dims.size() > 1) type.dims.push_back(shape.n);
  return std::vector<TensorType>{type};
}

// Rows of b are added up, which the compiler vectorizes.
template <class T>
void MultiplyInto(const T* a, const T* b, T* y, int64_t m, int64_t n,
                  int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    T* const row = y + i * n;
    for (int64_t l = 0; l < k; ++l) {
      const T factor = a[i * k + l];
      const T* const other = b + l * n;
      for (int64_t j = 0; j < n; ++j) row[j] += factor * other[j];
    }
  }
}

Arrays Matmul(const Node& node, const ArrayList& inputs,
              const std::vector<TensorType>& types) {
  const Array &a = *inputs[0], &b = *inputs[1];
  OPTRAIL_ASSIGN_OR_RETURN(const MatmulShape shape,
                           ShapeOfMatmul(a.type, b.type));
  const int64_t m = shape.m, n = shape.n, k = shape.k;
  Array y = Array::Zeros(types[0]);
  // Integers overflow as unsigned ones do, without undefined behaviour.
  std::vector<uint64_t> ua(a.integers.begin(), a.integers.end());
  std::vector<uint64_t> ub(b.integers.begin(), b.integers.end());
  std::vector<uint64_t> uy(y.integers.size());
  ForEachElement(
      shape.batch,
      {BroadcastStrides(Dims(shape.a.begin(), shape.a.end() - 2), shape.batch),
       BroadcastStrides(Dims(shape.b.begin(), shape.b.end() - 2), shape.batch)},
      [&](int64_t i, const std::vector<int64_t>& at) {
        if (y.is_real()) {
          MultiplyInto(a.reals.data() + at[0] * m * k,
                       b.reals.data() + at[1] * k * n,
                       y.reals.data() + i * m * n, m, n, k);
        } else {
          MultiplyInto(ua.data() + at[0] * m * k, ub.data() + at[1] * k * n,
                       uy.data() + i * m * n, m, n, k);
        }
      });
  for (size_t i = 0; i < uy.size(); ++i) {
    y.integers[i] = Wrap(types[0].type, static_cast<int64_t>(uy[i]));
  }
  return std::vector<Array>{std::move(y)};
}

// linear {activation}: x [..., k] times w [k, n], plus the bias [n] if there is
// one, and then "", "relu" or "gelu" (with erf).
Types InferLinear(const Node& node, const TypeList& inputs) {
  OPTRAIL_RETURN_IF_ERROR(RealTypes(inputs));
  if (inputs[1]->dims.size() != 2 || inputs[0]->dims.empty() ||
      (inputs.size() > 2 && inputs[2] != nullptr &&
       inputs[2]->dims != Dims{inputs[1]->dims[1]})) {
    return absl::InvalidArgumentError(
        absl::StrCat(TypeText(*inputs[0]), " x ", TypeText(*inputs[1]),
                     ": expected weights [k,n] and a bias [n]"));
  }
  return InferMatmul(node, {inputs[0], inputs[1]});
}

Arrays Linear(const Node& node, const ArrayList& inputs,
              const std::vector<TensorType>& types) {
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<Array> y,
                           Matmul(node, {inputs[0], inputs[1]}, types));
  const int64_t n = inputs[1]->type.dims[1];
  const std::string activation = node.Text("activation");
  const bool has_bias = inputs.size() > 2 && inputs[2] != nullptr;
  const ElementwiseOp* const relu = FindElementwise("relu");
  const ElementwiseOp* const erf = FindElementwise("erf");
  for (int64_t i = 0; i < y[0].elements(); ++i) {
    double& value = y[0].reals[i];
    if (has_bias) value += inputs[2]->reals[i % n];
    if (activation == "relu") value = relu->real(value, 0, 0);
    if (activation == "gelu") {
      value = 0.5 * value * (1 + erf->real(value / 1.4142135623730951, 0, 0));
    }
  }
  return y;
}

// Spatial dimensions of conv and conv_transpose, which have x [n, c, ...],
// weights and a bias or none, and {strides, begin, end, dilations, group}:
// begin and end are what is padded (or cut off) on each side.
struct ConvShape {
  Dims strides, begin, end, dilations;
  int64_t group = 1;
};

absl::StatusOr<ConvShape> ShapeOfConv(const Node& node,
                                      const TypeList& inputs) {
  OPTRAIL_RETURN_IF_ERROR(RealTypes(inputs));
  const Dims &x = inputs[0]->dims, &w = inputs[1]->dims;
  if (x.size() < 3 || w.size() != x.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(TypeText(*inputs[0]), " with weights ",
                     TypeText(*inputs[1]), ": expected [n,c,...] of one rank"));
  }
  const size_t spatial = x.size() - 2;
  ConvShape shape{node.Ints("strides"), node.Ints("begin"), node.Ints("end"),
                  node.Ints("dilations"), node.Int("group", 1)};
  for (const Dims* dims :
       {&shape.strides, &shape.begin, &shape.end, &shape.dilations}) {
    if (dims->size() != spatial) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[", absl::StrJoin(*dims, ","), "] for ", spatial, " dimensions"));
    }
  }
  for (size_t d = 0; d < spatial; ++d) {
    if (shape.strides[d] < 1 || shape.dilations[d] < 1 || w[2 + d] < 1 ||
        shape.strides[d] > kMostElements ||
        shape.dilations[d] > kMostElements ||
        std::max(std::abs(shape.begin[d]), std::abs(shape.end[d])) >
            kMostElements) {
      return absl::InvalidArgumentError(
          absl::StrCat("stride ", shape.strides[d], ", dilation ",
                       shape.dilations[d], ", padding ", shape.begin[d], ",",
                       shape.end[d], " of a kernel of ", w[2 + d]));
    }
  }
  if (shape.group < 1 || x[1] % shape.group != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("group=", shape.group, " of ", x[1], " channels"));
  }
  return shape;
}

absl::Status CheckBias(const TypeList& inputs, int64_t channels) {
  if (inputs.size() < 3 || inputs[2] == nullptr ||
      inputs[2]->dims == Dims{channels}) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the bias is ", TypeText(*inputs[2]), "; expected [", channels, "]"));
}

Types InferConv(const Node& node, const TypeList& inputs) {
  OPTRAIL_ASSIGN_OR_RETURN(const ConvShape shape, ShapeOfConv(node, inputs));
  const Dims &x = inputs[0]->dims, &w = inputs[1]->dims;
  if (w[1] != x[1] / shape.group || w[0] % shape.group != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(TypeText(*inputs[0]), " with weights ",
                     TypeText(*inputs[1]), " in ", shape.group, " groups"));
  }
  OPTRAIL_RETURN_IF_ERROR(CheckBias(inputs, w[0]));
  TensorType type{inputs[0]->type, {x[0], w[0]}};
  for (size_t d = 0; d < shape.strides.size(); ++d) {
    const __int128 room =
        static_cast<__int128>(x[2 + d]) + shape.begin[d] + shape.end[d] - 1 -
        static_cast<__int128>(shape.dilations[d]) * (w[2 + d] - 1);
    if (room < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a kernel of ", w[2 + d], " does not fit ", x[2 + d],
                       " with padding ", shape.begin[d], ",", shape.end[d]));
    }
    type.dims.push_back(static_cast<int64_t>(room / shape.strides[d]) + 1);
  }
  return std::vector<TensorType>{type};
}

// Calls body(place in x, place in the kernel, flat) for the kernel's elements
// that lie on the input, around the result at `out` (spatial indices).
template <class Body>
void ForEachTap(const Dims& x, const Dims& kernel, const ConvShape& shape,
                const Dims& out, const Body& body) {
  ForEachElement(kernel, {}, [&](int64_t tap, const std::vector<int64_t>&) {
    int64_t rest = tap, place = 0, stride = 1;
    for (size_t d = kernel.size(); d-- > 0;) {
      const int64_t i = out[d] * shape.strides[d] - shape.begin[d] +
                        rest % kernel[d] * shape.dilations[d];
      rest /= kernel[d];
      if (i < 0 || i >= x[d]) return;
      place += i * stride;
      stride *= x[d];
    }
    body(place, tap);
  });
}

Dims Unflatten(int64_t i, const Dims& dims) {
  Dims place(dims.size());
  for (size_t d = dims.size(); d-- > 0;) {
    place[d] = i % dims[d];
    i /= dims[d];
  }
  return place;
}

Arrays Conv(const Node& node, const ArrayList& inputs,
            const std::vector<TensorType>& types) {
  const Array &x = *inputs[0], &w = *inputs[1];
  OPTRAIL_ASSIGN_OR_RETURN(const ConvShape shape,
                           ShapeOfConv(node, {&x.type, &w.type}));
  const Dims in(x.type.dims.begin() + 2, x.type.dims.end());
  const Dims kernel(w.type.dims.begin() + 2, w.type.dims.end());
  const Dims out(types[0].dims.begin() + 2, types[0].dims.end());
  const int64_t batch = x.type.dims[0], channels = w.type.dims[1];
  const int64_t all = x.type.dims[1], filters = w.type.dims[0];
  const int64_t per_group = filters / shape.group;
  const int64_t xs = Elements(in), ks = Elements(kernel), ys = Elements(out);
  Array y = Array::Zeros(types[0]);
  for (int64_t place = 0; place < ys; ++place) {
    // (place in x, tap) are the same for all channels.
    std::vector<std::pair<int64_t, int64_t>> taps;
    ForEachTap(in, kernel, shape, Unflatten(place, out),
               [&](int64_t from, int64_t tap) {
                 taps.push_back({from, tap});
               });
    for (int64_t nf = 0; nf < batch * filters; ++nf) {
      const int64_t f = nf % filters;
      double sum =
          inputs.size() > 2 && inputs[2] != nullptr ? inputs[2]->reals[f] : 0;
      const int64_t first = nf / filters * all + f / per_group * channels;
      for (int64_t c = 0; c < channels; ++c) {
        const double* const from = x.reals.data() + (first + c) * xs;
        const double* const by = w.reals.data() + (f * channels + c) * ks;
        for (const auto& [at, tap] : taps) sum += from[at] * by[tap];
      }
      y.reals[nf * ys + place] = sum;
    }
  }
  return std::vector<Array>{std::move(y)};
}

// conv_transpose, the gradient of conv by its input: weights [c, f / group,
// ...], and {output_padding} that adds to the end.
Types InferConvTranspose(const Node& node, const TypeList& inputs) {
  OPTRAIL_ASSIGN_OR_RETURN(const ConvShape shape, ShapeOfConv(node, inputs));
  const Dims &x = inputs[0]->dims, &w = inputs[1]->dims;
  const Dims more = node.Ints("output_padding");
  if (w[0] != x[1] || more.size() != shape.strides.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        TypeText(*inputs[0]), " with weights ", TypeText(*inputs[1])));
  }
  OPTRAIL_RETURN_IF_ERROR(CheckDims({w[1], shape.group}));
  OPTRAIL_RETURN_IF_ERROR(CheckBias(inputs, w[1] * shape.group));
  TensorType type{inputs[0]->type, {x[0], w[1] * shape.group}};
  for (size_t d = 0; d < shape.strides.size(); ++d) {
    const __int128 size =
        static_cast<__int128>(shape.strides[d]) * (x[2 + d] - 1) + more[d] +
        static_cast<__int128>(w[2 + d] - 1) * shape.dilations[d] + 1 -
        shape.begin[d] - shape.end[d];
    if (size < 1 || size > kMostElements) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension ", 2 + d, " of the result would have ",
                       static_cast<int64_t>(size), " elements"));
    }
    type.dims.push_back(static_cast<int64_t>(size));
  }
  return std::vector<TensorType>{type};
}

Arrays ConvTranspose(const Node& node, const ArrayList& inputs,
                     const std::vector<TensorType>& types) {
  const Array &x = *inputs[0], &w = *inputs[1];
  OPTRAIL_ASSIGN_OR_RETURN(const ConvShape shape,
                           ShapeOfConv(node, {&x.type, &w.type}));
  const Dims in(x.type.dims.begin() + 2, x.type.dims.end());
  const Dims kernel(w.type.dims.begin() + 2, w.type.dims.end());
  const Dims out(types[0].dims.begin() + 2, types[0].dims.end());
  const int64_t channels = x.type.dims[1], per_group = w.type.dims[1];
  const int64_t filters = types[0].dims[1];
  const int64_t xs = Elements(in), ks = Elements(kernel), ys = Elements(out);
  Array y = Array::Zeros(types[0]);
  for (int64_t i = 0; i < y.elements(); ++i) {
    if (inputs.size() > 2 && inputs[2] != nullptr) {
      y.reals[i] = inputs[2]->reals[i / ys % filters];
    }
  }
  for (int64_t place = 0; place < xs; ++place) {
    ForEachTap(
        out, kernel, shape, Unflatten(place, in), [&](int64_t to, int64_t tap) {
          for (int64_t nc = 0; nc < x.type.dims[0] * channels; ++nc) {
            const int64_t c = nc % channels;
            const int64_t first = nc / channels * filters +
                                  c / (channels / shape.group) * per_group;
            for (int64_t f = 0; f < per_group; ++f) {
              y.reals[(first + f) * ys + to] +=
                  x.reals[nc * xs + place] *
                  w.reals[(c * per_group + f) * ks + tap];
            }
          }
        });
  }
  return std::vector<Array>{std::move(y)};
}

}  // namespace

std::vector<OpSpec> ContractionOps() {
  const OpKind kind = OpKind::kContraction;
  return {{"matmul", kind, 2, 2, InferMatmul, Matmul},
          {"linear", kind, 2, 3, InferLinear, Linear},
          {"conv", kind, 2, 3, InferConv, Conv},
          {"conv_transpose", kind, 2, 3, InferConvTranspose, ConvTranspose}};
}

}  // namespace optrail::graph
