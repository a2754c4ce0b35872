// GridSample and RoiAlign: pixels at places that the model computes. Each
// result is a weighted sum of near pixels, which become gathers, products and
// sums.

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/onnx/node_import.h"

namespace optrail::graph {
namespace {

using Results = std::vector<int>;

// A pixel along one axis for each place: where it is, as a real number, and its
// weight.
struct Tap {
  int at = -1, weight = -1;
};

// Arithmetic by short names.
class Sampling {
 protected:
  explicit Sampling(NodeImport& node) : node_(node) {}

  int Number(int like, double value) { return node_.Scalar(like, value); }
  int Add(int a, int b) { return node_.Emit("add", {a, b}); }
  int Sub(int a, int b) { return node_.Emit("sub", {a, b}); }
  int Mul(int a, int b) { return node_.Emit("mul", {a, b}); }

  NodeImport& node_;
};

class GridSample : private Sampling {
 public:
  explicit GridSample(NodeImport& node) : Sampling(node) {}

  Results Run() {
    const int x = node_.In(0), grid = node_.In(1);
    if (!node_.ok()) return {};
    const Dims d = node_.dims(x), g = node_.dims(grid);
    mode_ = node_.Text("mode", "bilinear");
    padding_ = node_.Text("padding_mode", "zeros");
    aligned_ = node_.Int("align_corners", 0) != 0;
    if (d.size() != 4 || g.size() != 4) {
      node_.NotCovered("expected images of two dimensions");
      return {};
    }
    if (g[0] != d[0] || g[3] != 2 || d[2] < 1 || d[3] < 1 ||
        node_.type(grid).type != node_.type(x).type) {
      node_.Wrong(absl::StrCat("the grid is ", TypeText(node_.type(grid)),
                               " for ", TypeText(node_.type(x))));
      return {};
    }
    if ((mode_ != "bilinear" && mode_ != "nearest" && mode_ != "bicubic") ||
        (padding_ != "zeros" && padding_ != "border" &&
         padding_ != "reflection")) {
      node_.NotCovered(
          absl::StrCat("mode=", mode_, ", padding_mode=", padding_));
      return {};
    }
    const int64_t n = d[0], c = d[1], places = g[1] * g[2];
    const auto along = [&](int64_t i) {
      return node_.Reshape(node_.Slice(grid, 3, i, 1), {n, 1, places});
    };
    const std::vector<Tap> across = Taps(along(0), d[3]);
    const std::vector<Tap> down = Taps(along(1), d[2]);
    const int pixels = node_.Reshape(x, {n, c, d[2] * d[3]});
    int sum = -1;
    for (const Tap& row : down) {
      for (const Tap& column : across) {
        const int place = Add(Mul(Within(row.at, d[2]), Number(row.at, d[3])),
                              Within(column.at, d[3]));
        const int index =
            node_.Expand(node_.Cast(place, proto::ELEMENT_I64), {n, c, places});
        int value = node_.Emit("gather_elements", {pixels, index},
                               {{"axis", int64_t{2}}});
        if (row.weight >= 0) value = Mul(value, row.weight);
        if (column.weight >= 0) value = Mul(value, column.weight);
        if (padding_ == "zeros") {
          const int seen = node_.Emit(
              "and", {IsWithin(row.at, d[2]), IsWithin(column.at, d[3])});
          value = node_.Emit("where", {seen, value, Number(value, 0)});
        }
        sum = sum < 0 ? value : Add(sum, value);
      }
    }
    return {node_.Reshape(sum, {n, c, g[1], g[2]})};
  }

 private:
  int Within(int at, int64_t size) {
    at = node_.Emit("max", {at, Number(at, 0)});
    return node_.Emit("min", {at, Number(at, static_cast<double>(size - 1))});
  }
  int IsWithin(int at, int64_t size) {
    return node_.Emit(
        "and", {node_.Emit("greater_or_equal", {at, Number(at, 0)}),
                node_.Emit("less_or_equal",
                           {at, Number(at, static_cast<double>(size - 1))})});
  }

  // Places beyond the image as the padding has them.
  int Padded(int at, int64_t size) {
    const double s = static_cast<double>(size);
    if (padding_ == "reflection") {
      const double low = aligned_ ? 0 : -0.5, span = aligned_ ? s - 1 : s;
      if (span == 0) return Mul(at, Number(at, 0));
      const int apart = node_.Emit("abs", {Sub(at, Number(at, low))});
      const int times =
          node_.Emit("floor", {node_.Emit("div", {apart, Number(at, span)})});
      const int rest = Sub(apart, Mul(times, Number(at, span)));
      const int half =
          node_.Emit("floor", {node_.Emit("div", {times, Number(at, 2)})});
      const int is_odd = node_.Emit(
          "greater", {Sub(times, Mul(half, Number(at, 2))), Number(at, 0.5)});
      at = Add(node_.Emit("where", {is_odd, Sub(Number(at, span), rest), rest}),
               Number(at, low));
    }
    return padding_ == "zeros" ? at : Within(at, size);
  }

  std::vector<Tap> Taps(int g, int64_t size) {
    const double s = static_cast<double>(size);
    // -1 and 1 are the centres of the outer pixels, or their edges.
    int at = Mul(Add(g, Number(g, 1)), Number(g, (aligned_ ? s - 1 : s) / 2));
    if (!aligned_) at = Sub(at, Number(at, 0.5));
    if (mode_ != "bicubic") at = Padded(at, size);
    if (mode_ == "nearest") return {{node_.Emit("round", {at}), -1}};
    const int first = node_.Emit("floor", {at});
    const int part = Sub(at, first);
    const int rest = Sub(Number(part, 1), part);
    if (mode_ == "bilinear") {
      return {{first, rest}, {Add(first, Number(first, 1)), part}};
    }
    std::vector<Tap> taps;
    const int distances[] = {Add(part, Number(part, 1)), part, rest,
                             Add(rest, Number(rest, 1))};
    for (int i = 0; i < 4; ++i) {
      taps.push_back({Padded(Add(first, Number(first, i - 1)), size),
                      Cubic(distances[i], i == 1 || i == 2)});
    }
    return taps;
  }

  // Keys' weights for a = -0.75.
  int Cubic(int d, bool near) {
    constexpr double a = -0.75;
    const auto polynomial = [&](double c3, double c2, double c1, double c0) {
      int y = Add(Mul(d, Number(d, c3)), Number(d, c2));
      y = Add(Mul(y, d), Number(d, c1));
      return Add(Mul(y, d), Number(d, c0));
    };
    return near ? polynomial(a + 2, -(a + 3), 0, 1)
                : polynomial(a, -5 * a, 8 * a, -4 * a);
  }

  std::string mode_, padding_;
  bool aligned_ = false;
};

// Boxes of an image, each divided into bins; a bin is the mean, or the largest,
// of sampling_ratio^2 places in it. With mode=max what is compared are the four
// weighted pixels of each place, and not their sums, as in ONNX Runtime.
class RoiAlign : private Sampling {
 public:
  explicit RoiAlign(NodeImport& node) : Sampling(node) {}

  Results Run() {
    const int x = node_.In(0), boxes = node_.In(1), images = node_.In(2);
    if (!node_.ok() || !Fits(x, boxes, images)) return {};
    const Dims d = node_.dims(x);
    const int64_t r = node_.dims(boxes)[0];
    const int64_t rows = node_.Int("output_height", 1);
    const int64_t cols = node_.Int("output_width", 1);
    if (std::min(rows, cols) < 1 ||
        std::max({rows, cols, samples_}) > kMostSamples) {
      node_.Wrong(absl::StrCat("output_height=", rows, " output_width=", cols,
                               " sampling_ratio=", samples_));
      return {};
    }
    // Pixels as rows of channels, which a gather copies as they are.
    const int pixels = node_.Reshape(node_.Transpose(x, {0, 2, 3, 1}),
                                     {d[0] * d[2] * d[3], d[1]});
    const int first = node_.Emit(
        "mul",
        {node_.Reshape(node_.Cast(images, proto::ELEMENT_I64), {r, 1, 1}),
         Index(d[2] * d[3])});
    if (!Counts(boxes, rows, cols)) return {};
    const int64_t s = samples_;
    const std::vector<Tap> down = Taps(boxes, 1, rows, d[2]);
    const std::vector<Tap> across = Taps(boxes, 0, cols, d[3]);
    if (down.empty() || across.empty()) return {};
    int sum = -1;
    for (const Tap& row : down) {
      for (const Tap& column : across) {
        const int line = node_.Emit(
            "mul", {node_.Reshape(row.at, {r, rows * s, 1}), Index(d[3])});
        const int place =
            node_.Emit("add", {node_.Emit("add", {first, line}),
                               node_.Reshape(column.at, {r, 1, cols * s})});
        const int weight = node_.Emit(
            "mul", {node_.Reshape(row.weight, {r, rows * s, 1, 1}),
                    node_.Reshape(column.weight, {r, 1, cols * s, 1})});
        const int value = node_.Emit(
            "mul",
            {node_.Emit("gather", {pixels, place}, {{"axis", int64_t{0}}}),
             weight});
        sum =
            sum < 0 ? value : node_.Emit(is_max_ ? "max" : "add", {sum, value});
      }
    }
    const int bins = node_.Reshape(sum, {r, rows, s, cols, s, d[1]});
    const int results = node_.Reduce(is_max_ ? "reduce_max" : "reduce_mean",
                                     bins, {2, 4}, false);
    return {node_.Transpose(results, {0, 3, 1, 2})};
  }

 private:
  bool Fits(int x, int boxes, int images) {
    const Dims d = node_.dims(x), b = node_.dims(boxes);
    if (d.size() != 4 || std::min(d[2], d[3]) < 1 || b.size() != 2 ||
        b[1] != 4 || node_.dims(images) != Dims{b[0]} ||
        node_.type(boxes).type != node_.type(x).type ||
        !IsReal(node_.type(x).type)) {
      node_.Wrong(absl::StrCat("boxes are ", TypeText(node_.type(boxes)),
                               " of images ", TypeText(node_.type(images)),
                               " for ", TypeText(node_.type(x)),
                               "; expected [boxes,4] and [boxes]"));
      return false;
    }
    samples_ = node_.Int("sampling_ratio", 0);
    const std::string mode = node_.Text("mode", "avg");
    is_max_ = mode == "max";
    if (mode != "avg" && mode != "max") {
      node_.Wrong(absl::StrCat("mode=", mode, "; expected avg or max"));
    }
    return node_.ok();
  }

  bool IsHalfPixel() const {
    return node_.opset() >= 16 && node_.Text("coordinate_transformation_mode",
                                             "half_pixel") == "half_pixel";
  }

  // With sampling_ratio=0 each box has as many places in a bin, along each
  // axis, as it has pixels there. Boxes that are known have a known number.
  bool Counts(int boxes, int64_t rows, int64_t cols) {
    if (samples_ > 0) return node_.ok();
    const Array known = node_.Known(
        boxes,
        "sampling_ratio=0 needs known boxes, since they decide about "
        "the number of samples; the input");
    if (!node_.ok()) return false;
    // The graph computes in the type of the boxes, so that a count which is
    // just above or below a whole number there is so here.
    const bool single = known.type.type == proto::ELEMENT_F32;
    const auto rounded = [single](double value) {
      return single ? static_cast<double>(static_cast<float>(value)) : value;
    };
    const double scale = rounded(node_.Real("spatial_scale", 1));
    samples_ = 1;
    for (int64_t b = 0; b < known.type.dims[0]; ++b) {
      for (int64_t side = 0; side < 2; ++side) {
        const auto edge = [&](int64_t column) {
          const double scaled = rounded(known.At(4 * b + column) * scale);
          return IsHalfPixel() ? rounded(scaled - 0.5) : scaled;
        };
        double length = rounded(edge(side + 2) - edge(side));
        if (!IsHalfPixel()) length = std::max(length, 1.);
        const double count = std::ceil(
            rounded(length / static_cast<double>(side == 0 ? cols : rows)));
        if (!(count <= kMostSamples)) {
          node_.NotCovered(absl::StrCat("a box has ", count,
                                        " samples in a bin along an axis; at "
                                        "most ",
                                        kMostSamples, " are covered"));
          return false;
        }
        counts_[side].push_back(static_cast<int64_t>(std::max(count, 0.)));
        samples_ = std::max(samples_, counts_[side].back());
      }
    }
    return true;
  }

  // The place along a box, as a part of its length, and what its
  // weight is multiplied by: [1, places], or [boxes, places] where each box has
  // a number of its own. A box with fewer places than others has its last one
  // again, which counts for nothing.
  struct Places {
    int part = -1, factor = -1;
  };
  Places PlacesOf(int64_t side, int64_t bins, proto::ElementType type) {
    const Dims counts = counts_[side].empty() ? Dims{samples_} : counts_[side];
    const int64_t boxes = static_cast<int64_t>(counts.size());
    const int64_t places = bins * samples_;
    if (!node_.MayMake(2 * boxes * places)) return {};
    std::vector<double> parts, factors;
    for (const int64_t count : counts) {
      const double most = static_cast<double>(std::max<int64_t>(count, 1));
      for (int64_t i = 0; i < places; ++i) {
        const int64_t bin = i / samples_, sample = i % samples_;
        const double at =
            (std::min(static_cast<double>(sample), most - 1) + 0.5) / most;
        parts.push_back((static_cast<double>(bin) + at) /
                        static_cast<double>(bins));
        const bool counts_too = count > 0 && (is_max_ || sample < count);
        factors.push_back(!counts_too ? 0
                          : is_max_   ? 1
                                      : static_cast<double>(samples_) / most);
      }
    }
    const auto constant = [&](std::vector<double> values) {
      return node_.Cast(
          node_.Constant(Array::Reals(proto::ELEMENT_F64, {boxes, places},
                                      std::move(values))),
          type);
    };
    Places result{constant(std::move(parts)), -1};
    if (!counts_[side].empty()) result.factor = constant(std::move(factors));
    return result;
  }

  int Index(int64_t value) { return node_.IntConstant({value}, {}); }

  // The pixels below and above each place along one axis, [boxes, places], and
  // their weights; none if the constants would be too large. `side` is the
  // box's first column of the two of the axis.
  std::vector<Tap> Taps(int boxes, int64_t side, int64_t bins, int64_t size) {
    const bool half = IsHalfPixel();
    const auto edge = [&](int64_t column) {
      const int scaled = Mul(node_.Slice(boxes, 1, column, 1),
                             Number(boxes, node_.Real("spatial_scale", 1)));
      return half ? Sub(scaled, Number(boxes, 0.5)) : scaled;
    };
    const int begin = edge(side);
    int length = Sub(edge(side + 2), begin);
    if (!half) length = node_.Emit("max", {length, Number(boxes, 1)});
    const Places places = PlacesOf(side, bins, node_.type(boxes).type);
    if (!node_.ok()) return {};
    const int at = Add(begin, Mul(length, places.part));
    // A place that is more than a pixel outside counts for nothing.
    const double last = static_cast<double>(size - 1);
    int seen = node_.Cast(
        node_.Emit("and",
                   {node_.Emit("greater_or_equal", {at, Number(at, -1)}),
                    node_.Emit("less_or_equal", {at, Number(at, last + 1)})}),
        node_.type(boxes).type);
    if (places.factor >= 0) seen = Mul(seen, places.factor);
    const int within = node_.Emit(
        "min", {node_.Emit("max", {at, Number(at, 0)}), Number(at, last)});
    const int below = node_.Emit("floor", {within});
    const int above =
        node_.Emit("min", {Add(below, Number(at, 1)), Number(at, last)});
    const int rest = Sub(within, below);
    const auto tap = [&](int pixel, int weight) {
      return Tap{node_.Cast(pixel, proto::ELEMENT_I64), Mul(weight, seen)};
    };
    return {tap(below, Sub(Number(at, 1), rest)), tap(above, rest)};
  }

  static constexpr int64_t kMostSamples = 4096;

  int64_t samples_ = 0;
  bool is_max_ = false;
  // How many places each box has in a bin, across and down; empty where all
  // boxes have samples_.
  Dims counts_[2];
};

}  // namespace

void AddSampleRules(ImportRules& rules) {
  rules["RoiAlign"] = [](NodeImport& node) { return RoiAlign(node).Run(); };
  rules["GridSample"] = [](NodeImport& node) { return GridSample(node).Run(); };
}

}  // namespace optrail::graph
