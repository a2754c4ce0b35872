// max_pool and avg_pool {kernel, strides, begin, end, dilations, ceil}: windows
// over the dimensions of x [n, c, ...] behind the first two. With `ceil` the
// last window may reach beyond the padding. avg_pool {count_padding} divides by
// padding, too; max_pool {column_major} gives its second result, the places of
// the maxima in x, for an x whose last two dimensions change places.

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/ir/ops.h"

namespace optrail::graph {
namespace {

absl::StatusOr<int64_t> WindowCount(const Node& node, size_t d, int64_t size) {
  const int64_t kernel = node.Ints("kernel")[d];
  const int64_t stride = node.Ints("strides")[d];
  const int64_t begin = node.Ints("begin")[d], end = node.Ints("end")[d];
  const int64_t dilation = node.Ints("dilations")[d];
  if (kernel < 1 || stride < 1 || dilation < 1 || begin < 0 || end < 0 ||
      std::max({kernel, stride, dilation, begin, end}) > (1 << 30)) {
    return absl::InvalidArgumentError(
        absl::StrCat("window of ", kernel, ", stride ", stride, ", dilation ",
                     dilation, ", padding ", begin, ",", end));
  }
  const int64_t room = size + begin + end - dilation * (kernel - 1) - 1;
  if (room < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a window of ", kernel, " does not fit ", size,
                     " with padding ", begin, ",", end));
  }
  int64_t count = room / stride + 1;
  // A window begins within the input or the padding before it.
  if (node.Int("ceil") != 0 && room % stride != 0 &&
      count * stride < size + begin) {
    ++count;
  }
  return count;
}

Types InferPool(const Node& node, const TypeList& inputs) {
  TensorType type = *inputs[0];
  const size_t spatial = type.dims.size() - 2;
  if (type.dims.size() < 3) {
    return absl::InvalidArgumentError(
        absl::StrCat(TypeText(type), ": expected [n,c,...]"));
  }
  for (const char* name : {"kernel", "strides", "begin", "end", "dilations"}) {
    if (node.Ints(name).size() != spatial) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " has ", node.Ints(name).size(), " values for ",
                       spatial, " dimensions"));
    }
  }
  if (node.op == "avg_pool" && !IsReal(type.type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("is not defined for ", ElementTypeName(type.type)));
  }
  for (size_t d = 0; d < spatial; ++d) {
    OPTRAIL_ASSIGN_OR_RETURN(type.dims[2 + d],
                             WindowCount(node, d, type.dims[2 + d]));
  }
  if (node.op == "avg_pool") return std::vector<TensorType>{type};
  return std::vector<TensorType>{type, {proto::ELEMENT_I64, type.dims}};
}

struct Window {
  std::vector<int64_t> places;  // in one image of x
  int64_t padded = 0;           // elements of x and its padding
};

Window WindowAt(const Node& node, const Dims& in, const Dims& out,
                int64_t place) {
  const Dims kernel = node.Ints("kernel"), strides = node.Ints("strides"),
             begin = node.Ints("begin"), end = node.Ints("end"),
             dilations = node.Ints("dilations");
  Window window;
  const int64_t taps = Elements(kernel);
  for (int64_t tap = 0; tap < taps; ++tap) {
    int64_t rest = tap, at = place, from = 0, stride = 1;
    bool in_x = true, in_padding = true;
    for (size_t d = in.size(); d-- > 0;) {
      const int64_t i =
          at % out[d] * strides[d] - begin[d] + rest % kernel[d] * dilations[d];
      at /= out[d];
      rest /= kernel[d];
      in_x = in_x && i >= 0 && i < in[d];
      in_padding = in_padding && i < in[d] + end[d];
      from += i * stride;
      stride *= in[d];
    }
    if (in_x) window.places.push_back(from);
    if (in_padding) ++window.padded;
  }
  return window;
}

int64_t ColumnMajor(int64_t place, const Dims& in) {
  // The first spatial index changes fastest, as ONNX has it.
  Dims at(in.size());
  for (size_t d = in.size(); d-- > 0;) {
    at[d] = place % in[d];
    place /= in[d];
  }
  int64_t result = 0, stride = 1;
  for (size_t d = 0; d < in.size(); ++d) {
    result += at[d] * stride;
    stride *= in[d];
  }
  return result;
}

Arrays Pool(const Node& node, const ArrayList& inputs,
            const std::vector<TensorType>& types) {
  const Array& x = *inputs[0];
  const Dims in(x.type.dims.begin() + 2, x.type.dims.end());
  const Dims out(types[0].dims.begin() + 2, types[0].dims.end());
  const int64_t images = x.type.dims[0] * x.type.dims[1];
  const int64_t xs = Elements(in), ys = Elements(out);
  const bool maximum = node.op == "max_pool";
  const bool count_padding = node.Int("count_padding") != 0;
  const bool column_major = node.Int("column_major") != 0;
  std::vector<Array> results;
  for (const TensorType& type : types) results.push_back(Array::Zeros(type));
  for (int64_t place = 0; place < ys; ++place) {
    const Window window = WindowAt(node, in, out, place);
    for (int64_t image = 0; image < images; ++image) {
      const int64_t base = image * xs, to = image * ys + place;
      if (maximum) {
        if (window.places.empty()) {
          if (x.is_real()) {
            results[0].reals[to] = -std::numeric_limits<double>::infinity();
          }
          continue;
        }
        int64_t best = window.places[0];
        for (const int64_t from : window.places) {
          const double value = x.At(base + from);
          if (value > x.At(base + best) || std::isnan(value)) best = from;
        }
        results[0].Copy(to, x, base + best);
        results[1].integers[to] =
            base + (column_major ? ColumnMajor(best, in) : best);
      } else {
        double sum = 0;
        for (const int64_t from : window.places) sum += x.reals[base + from];
        results[0].reals[to] =
            sum / static_cast<double>(count_padding ? window.padded
                                                    : window.places.size());
      }
    }
  }
  return results;
}

}  // namespace

std::vector<OpSpec> WindowOps() {
  const OpKind kind = OpKind::kOther;
  return {{"max_pool", kind, 1, 1, InferPool, Pool},
          {"avg_pool", kind, 1, 1, InferPool, Pool}};
}

}  // namespace optrail::graph
