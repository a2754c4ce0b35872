// Signals: windows and mel weights that follow from constants, and Fourier
// transforms as products with a constant matrix. A transform of n places takes
// n^2 operations so, and no kernel of its own.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/onnx/node_import.h"

namespace optrail::graph {
namespace {

using Results = std::vector<int>;

// The largest size, length or count; each is a number of elements.
constexpr int64_t kMostPlaces = 1 << 24;

// An operand that is one known number.
double Number(NodeImport& node, int i, absl::string_view what) {
  const Array value = node.Known(node.In(i), what);
  if (node.ok() && value.elements() != 1) {
    node.Wrong(absl::StrCat(what, " is ", TypeText(value.type),
                            "; expected one number"));
  }
  return node.ok() ? value.At(0) : 0;
}

int64_t Count(NodeImport& node, int i, absl::string_view what, int64_t least) {
  const double count = Number(node, i, what);
  if (node.ok() && !(count >= least && count <= kMostPlaces)) {
    node.Wrong(absl::StrCat(what, " is ", count, "; expected ", least, " to ",
                            kMostPlaces));
  }
  return node.ok() ? static_cast<int64_t>(count) : least;
}

// A sum of cosines: of the constant, of one turn, and of two.
struct CosineWindow {
  const char* onnx;
  double constant, once, twice;
};

constexpr CosineWindow kCosineWindows[] = {
    {"BlackmanWindow", 0.42, -0.5, 0.08},
    {"HammingWindow", 25. / 46, -21. / 46, 0},
    {"HannWindow", 0.5, -0.5, 0}};

Results Window(NodeImport& node, const CosineWindow& window) {
  const int64_t size = Count(node, 0, "the size", 0);
  const proto::ElementType type =
      node.Type("output_datatype", proto::ELEMENT_F32);
  if (!node.MayMake(size)) return {};
  const bool periodic = node.Int("periodic", 1) != 0;
  const double turn =
      2 * M_PI / static_cast<double>(std::max<int64_t>(size - !periodic, 1));
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i) {
    const double at = turn * static_cast<double>(i);
    values.push_back(window.constant + window.once * std::cos(at) +
                     window.twice * std::cos(2 * at));
  }
  const int made =
      node.Constant(Array::Reals(proto::ELEMENT_F64, {size}, values));
  return {node.Cast(made, type)};
}

// Bins of a spectrum, [bins of the spectrum, bins of the mel scale]: triangles
// between places that are equally far apart on the mel scale.
Results MelWeightMatrix(NodeImport& node) {
  const int64_t mels = Count(node, 0, "num_mel_bins", 1);
  const int64_t length = Count(node, 1, "dft_length", 1);
  const int64_t rate = Count(node, 2, "sample_rate", 1);
  const double low = Number(node, 3, "lower_edge_hertz");
  const double high = Number(node, 4, "upper_edge_hertz");
  const proto::ElementType type =
      node.Type("output_datatype", proto::ELEMENT_F32);
  if (!node.ok()) return {};
  const int64_t bins = length / 2 + 1;
  const auto mel = [](double hertz) {
    return 2595 * std::log10(1 + hertz / 700);
  };
  const double step = (mel(high) - mel(low)) / static_cast<double>(mels + 2);
  if (!(low >= 0 && step >= 0 && high < 1e9)) {
    node.Wrong(absl::StrCat("edges are ", low, " and ", high,
                            " Hz; expected two that rise"));
  }
  if (!node.MayMake(bins * mels)) return {};
  std::vector<double> places;  // whole numbers
  for (int64_t i = 0; i < mels + 2; ++i) {
    const double hertz =
        700 *
        (std::pow(10, (static_cast<double>(i) * step + mel(low)) / 2595) - 1);
    places.push_back(std::floor(static_cast<double>(length + 1) * hertz /
                                static_cast<double>(rate)));
    // The last place ends a triangle, and has no weight itself.
    const int64_t last = i == mels + 1 ? bins : bins - 1;
    if (places.back() <= static_cast<double>(last)) continue;
    node.Wrong(
        absl::StrCat(hertz, " Hz is beyond half of the sample rate ", rate));
    return {};
  }
  std::vector<double> weights(bins * mels, 0);
  for (int64_t i = 0; i < mels; ++i) {
    const double left = places[i], centre = places[i + 1],
                 right = places[i + 2];
    for (double at = left; at < centre; ++at) {
      weights[static_cast<int64_t>(at) * mels + i] =
          (at - left) / (centre - left);
    }
    weights[static_cast<int64_t>(centre) * mels + i] = 1;
    for (double at = centre; at < right; ++at) {
      weights[static_cast<int64_t>(at) * mels + i] =
          (right - at) / (right - centre);
    }
  }
  const int made =
      node.Constant(Array::Reals(proto::ELEMENT_F64, {bins, mels}, weights));
  return {node.Cast(made, type)};
}

struct Transform {
  int64_t length = 0;
  bool onesided = false;
  bool inverse = false;
};

// Returns the matrix [length * parts, bins * 2] that a row of `length` numbers
// is multiplied with. Each number has `parts`: one, or a real and an imaginary
// one.
Array FourierMatrix(const Transform& transform, int64_t bins, int64_t parts,
                    proto::ElementType type) {
  const int64_t n = transform.length;
  const double turn = 2 * M_PI / static_cast<double>(n);
  const double sign = transform.inverse ? 1 : -1;
  const double scale = transform.inverse ? 1 / static_cast<double>(n) : 1;
  Array matrix = Array::Zeros({type, {n * parts, bins * 2}});
  for (int64_t t = 0; t < n; ++t) {
    for (int64_t k = 0; k < bins; ++k) {
      // t * k modulo n keeps the angle exact.
      const double angle = turn * static_cast<double>(t * k % n);
      const double c = scale * std::cos(angle);
      const double s = scale * sign * std::sin(angle);
      double* const row = &matrix.reals[t * parts * bins * 2 + k * 2];
      row[0] = c;
      row[1] = s;
      if (parts == 1) continue;
      row[bins * 2] = -s;
      row[bins * 2 + 1] = c;
    }
  }
  return matrix;
}

// The transform of x [..., places, parts] along `axis`, which is none of the
// last dimension.
int Fourier(NodeImport& node, int x, int64_t axis, const Transform& transform) {
  if (!node.ok()) return NodeImport::kFailed;
  const int64_t rank = node.rank(x), n = transform.length;
  const int64_t parts = node.dims(x).back();
  const int64_t bins = transform.onesided ? n / 2 + 1 : n;
  if (!IsReal(node.type(x).type) || (parts != 1 && parts != 2)) {
    node.Wrong(absl::StrCat(TypeText(node.type(x)),
                            ": expected real or complex numbers, one or two in "
                            "the last dimension"));
    return NodeImport::kFailed;
  }
  if (n > kMostPlaces) {
    node.NotCovered(
        absl::StrCat("a transform of ", n, " places; at most ", kMostPlaces));
  }
  if (!node.MayMake(n * parts * bins * 2)) return NodeImport::kFailed;
  // The signal gets as many places as the transform has, with zeros behind.
  const int64_t places = node.dims(x)[axis];
  if (places > n) x = node.Slice(x, axis, 0, n);
  if (places < n) {
    Dims before(rank, 0), after(rank, 0);
    after[axis] = n - places;
    x = node.Emit("pad", {x},
                  {{"before", before},
                   {"after", after},
                   {"mode", std::string("constant")}});
  }
  Dims last(rank);
  std::iota(last.begin(), last.end(), 0);
  std::swap(last[axis], last[rank - 2]);
  x = node.Transpose(x, last);
  if (!node.ok()) return NodeImport::kFailed;
  Dims rows = node.dims(x);
  rows.resize(rank - 1);
  rows.back() = n * parts;
  const int matrix =
      node.Constant(FourierMatrix(transform, bins, parts, node.type(x).type));
  const int y = node.Emit("matmul", {node.Reshape(x, rows), matrix});
  rows.back() = bins;
  rows.push_back(2);
  return node.Transpose(node.Reshape(y, rows), last);
}

Results Dft(NodeImport& node) {
  const int x = node.In(0);
  if (!node.ok()) return {};
  const int64_t rank = node.rank(x);
  int64_t axis = node.Int("axis", 1);
  if (node.opset() >= 20)
    axis = node.Has(2) ? Count(node, 2, "axis", -rank) : -2;
  axis = node.Axis(axis, rank);
  if (!node.ok()) return {};
  if (rank < 2 || axis == rank - 1) {
    node.Wrong(absl::StrCat("axis ", axis, " of ", TypeText(node.type(x)),
                            "; the last one holds real and imaginary parts"));
    return {};
  }
  Transform transform;
  transform.length =
      node.Has(1) ? Count(node, 1, "dft_length", 1) : node.dims(x)[axis];
  transform.onesided = node.Int("onesided", 0) != 0;
  transform.inverse = node.Int("inverse", 0) != 0;
  if (transform.length < 1) node.Wrong("there is nothing to transform");
  if (transform.inverse && transform.onesided) {
    node.NotCovered("the inverse of a transform that is one-sided");
  }
  return {Fourier(node, x, axis, transform)};
}

// Frames of the signal, each times the window, and their transforms.
Results Stft(NodeImport& node) {
  const int x = node.In(0);
  const int64_t step = Count(node, 1, "frame_step", 1);
  if (!node.ok()) return {};
  const Dims d = node.dims(x);
  if (!node.Has(2) && !node.Has(3)) {
    node.Wrong("has neither a window nor a frame_length");
    return {};
  }
  const int64_t length = node.Has(3) ? Count(node, 3, "frame_length", 1)
                                     : Elements(node.dims(node.In(2)));
  if (d.size() != 3 || length < 1 || length > d[1] ||
      (node.Has(2) && node.dims(node.In(2)) != Dims{length})) {
    node.Wrong(absl::StrCat("frames of ", length, " of ",
                            TypeText(node.type(x)),
                            "; expected [n,places,1 or 2], and a window as "
                            "long as a frame"));
    return {};
  }
  const int64_t frames = (d[1] - length) / step + 1;
  if (std::max(frames, length) > kMostPlaces) {
    node.NotCovered(absl::StrCat(frames, " frames of ", length));
  }
  if (!node.MayMake(frames * length)) return {};
  Dims from;
  for (int64_t i = 0; i < frames * length; ++i) {
    from.push_back(i / length * step + i % length);
  }
  int y = node.Emit("gather", {x, node.IntConstant(from, {frames, length})},
                    {{"axis", int64_t{1}}});
  if (node.Has(2)) {
    const int window = node.Cast(node.In(2), node.type(x).type);
    y = node.Emit("mul", {y, node.Reshape(window, {length, 1})});
  }
  Transform transform;
  transform.length = length;
  transform.onesided = node.Int("onesided", 1) != 0;
  return {Fourier(node, y, 2, transform)};
}

}  // namespace

void AddSignalRules(ImportRules& rules) {
  rules.insert(
      {{"DFT", Dft}, {"MelWeightMatrix", MelWeightMatrix}, {"STFT", Stft}});
  for (const CosineWindow& window : kCosineWindows) {
    rules[window.onnx] = [&window](NodeImport& node) {
      return Window(node, window);
    };
  }
}

}  // namespace optrail::graph
