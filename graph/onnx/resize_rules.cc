// Resize and Upsample: along each axis, a result is a weighted sum of elements
// at places that are known when the model is imported, so that they become
// gathers, products and sums.

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "graph/onnx/node_import.h"

namespace optrail::graph {
namespace {

using Results = std::vector<int>;

// Element i of a result is the sum over t of weights[t][i] * x[places[t][i]].
struct Taps {
  std::vector<Dims> places;
  std::vector<std::vector<double>> weights;
};

struct Axis {
  int64_t from = 0, to = 0;
  double scale = 1;
  double roi_begin = 0, roi_end = 1;
};

// The coordinate in x of result i.
double Coordinate(const std::string& mode, const Axis& axis, int64_t i) {
  const double at = static_cast<double>(i);
  const double from = static_cast<double>(axis.from);
  if (mode == "asymmetric") return at / axis.scale;
  if (mode == "align_corners") {
    // The size before it was rounded.
    const double last = axis.scale * from - 1;
    return last == 0 ? 0 : at * (from - 1) / last;
  }
  if (mode == "tf_half_pixel_for_nn") return (at + 0.5) / axis.scale;
  if (mode == "pytorch_half_pixel" && axis.to == 1) return 0;
  if (mode == "tf_crop_and_resize") {
    const double last = static_cast<double>(axis.to) - 1;
    return last > 0
               ? axis.roi_begin * (from - 1) +
                     at * (axis.roi_end - axis.roi_begin) * (from - 1) / last
               : 0.5 * (axis.roi_begin + axis.roi_end) * (from - 1);
  }
  return (at + 0.5) / axis.scale - 0.5;
}

double Rounded(const std::string& mode, double at) {
  if (mode == "round_prefer_ceil") return std::floor(at + 0.5);
  if (mode == "floor") return std::floor(at);
  if (mode == "ceil") return std::ceil(at);
  return std::ceil(at - 0.5);
}

// Weights of the places floor(at) - 1 to floor(at) + 2 (Keys' cubic).
double Cubic(double distance, double a) {
  const double d = std::fabs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return (((d - 5) * d + 8) * d - 4) * a;
  return 0;
}

class Resize {
 public:
  explicit Resize(NodeImport& node) : node_(node) {}

  Results Run(int x, int roi, int scales, int sizes) {
    mode_ = node_.Text("mode", "nearest");
    transform_ = node_.Text("coordinate_transformation_mode",
                            node_.opset() < 11 ? "asymmetric" : "half_pixel");
    nearest_ = node_.Text("nearest_mode",
                          node_.opset() < 11 ? "floor" : "round_prefer_floor");
    if (mode_ == "bilinear" || mode_ == "trilinear") mode_ = "linear";
    if (node_.Int("antialias", 0) != 0 ||
        node_.Text("keep_aspect_ratio_policy", "stretch") != "stretch" ||
        (mode_ != "nearest" && mode_ != "linear" && mode_ != "cubic")) {
      node_.NotCovered(absl::StrCat("mode=", mode_,
                                    ", antialias or an aspect ratio policy"));
    }
    if (!node_.ok() || !FindAxes(x, roi, scales, sizes)) return {};
    int y = x;
    for (size_t d = 0; d < axes_.size(); ++d) {
      const Axis& axis = axes_[d];
      if (axis.from == axis.to && axis.scale == 1 && Keeps(axis)) continue;
      y = Along(y, static_cast<int64_t>(d), axis);
    }
    return {y};
  }

 private:
  bool Keeps(const Axis& axis) const {
    return transform_ != "tf_crop_and_resize" ||
           (axis.roi_begin == 0 && axis.roi_end == 1);
  }

  bool FindAxes(int x, int roi, int scales, int sizes) {
    const Dims dims = node_.dims(x);
    std::vector<double> factors;
    Dims to;
    if (scales >= 0) {
      const Array known = node_.Known(scales, "the scales");
      factors = known.reals;
    } else if (node_.HasAttribute("scales")) {
      factors = node_.onnx().attributes.find("scales")->second.reals;
    }
    if (sizes >= 0) to = node_.Known(sizes, "the sizes").integers;
    std::vector<double> region;
    if (roi >= 0 && transform_ == "tf_crop_and_resize") {
      region = node_.Known(roi, "the region").reals;
    }
    if (!node_.ok()) return false;
    const size_t rank = dims.size();
    Dims which(rank);
    for (size_t d = 0; d < rank; ++d) which[d] = static_cast<int64_t>(d);
    which = node_.Axes(node_.Ints("axes", which), rank);
    if (!node_.ok()) return false;
    const size_t count = which.size();
    if ((to.empty() ? factors.size() : to.size()) != count ||
        (!region.empty() && region.size() != 2 * count)) {
      node_.Wrong(absl::StrCat("scales or sizes are not ", count));
      return false;
    }
    axes_.resize(rank);
    for (size_t d = 0; d < rank; ++d) axes_[d].from = axes_[d].to = dims[d];
    for (size_t i = 0; i < count; ++i) {
      Axis& axis = axes_[which[i]];
      if (to.empty()) {
        axis.scale = factors[i];
        axis.to =
            TruncateTo(proto::ELEMENT_I64,
                       std::floor(static_cast<double>(axis.from) * factors[i]));
      } else {
        axis.to = to[i];
        axis.scale = static_cast<double>(to[i]) /
                     static_cast<double>(std::max<int64_t>(axis.from, 1));
      }
      if (!region.empty()) {
        axis.roi_begin = region[i];
        axis.roi_end = region[count + i];
      }
      if (!(axis.scale > 0) || axis.from < 1 || axis.to < 1 ||
          axis.to > (1 << 24)) {
        node_.Wrong(absl::StrCat("axis ", which[i], " of ", axis.from,
                                 " would have ", axis.to));
        return false;
      }
    }
    return true;
  }

  Taps TapsOf(const Axis& axis) const {
    const int count = mode_ == "nearest" ? 1 : mode_ == "linear" ? 2 : 4;
    const double a = node_.Real("cubic_coeff_a", -0.75);
    const bool exclude = node_.Int("exclude_outside", 0) != 0;
    Taps taps;
    taps.places.assign(count, Dims(axis.to));
    taps.weights.assign(count, std::vector<double>(axis.to, 0.0));
    for (int64_t i = 0; i < axis.to; ++i) {
      const double at = Coordinate(transform_, axis, i);
      const double base = mode_ == "nearest"  ? Rounded(nearest_, at)
                          : mode_ == "linear" ? std::floor(at)
                                              : std::floor(at) - 1;
      double sum = 0;
      for (int t = 0; t < count; ++t) {
        const double place = base + t;
        double weight = mode_ == "nearest"  ? 1
                        : mode_ == "linear" ? 1 - std::fabs(at - place)
                                            : Cubic(at - place, a);
        const bool outside =
            place < 0 || place > static_cast<double>(axis.from - 1);
        if (outside && exclude) weight = 0;
        taps.places[t][i] = static_cast<int64_t>(
            std::clamp(place, 0.0, static_cast<double>(axis.from - 1)));
        taps.weights[t][i] = weight;
        sum += weight;
      }
      for (int t = 0; t < count && exclude && sum != 0; ++t) {
        taps.weights[t][i] /= sum;
      }
    }
    return taps;
  }

  // Outside the region there is nothing to extrapolate from.
  int Cropped(int y, int64_t d, const Axis& axis) {
    if (transform_ != "tf_crop_and_resize") return y;
    Dims inside(axis.to);
    bool all = true;
    for (int64_t i = 0; i < axis.to; ++i) {
      const double at = Coordinate(transform_, axis, i);
      inside[i] = at >= 0 && at <= static_cast<double>(axis.from - 1);
      all = all && inside[i] != 0;
    }
    if (all || !node_.ok()) return y;
    const int mask = node_.AlongAxis(
        node_.Constant(Array::Integers(proto::ELEMENT_BOOL, {axis.to}, inside)),
        d, node_.rank(y));
    return node_.Emit(
        "where",
        {mask, y, node_.Scalar(y, node_.Real("extrapolation_value", 0))});
  }

  int Along(int x, int64_t d, const Axis& axis) {
    if (!node_.ok()) return x;
    const Taps taps = TapsOf(axis);
    int sum = -1;
    for (size_t t = 0; t < taps.places.size(); ++t) {
      int part = node_.Emit("gather",
                            {x, node_.IntConstant(taps.places[t], {axis.to})},
                            {{"axis", d}});
      if (mode_ != "nearest") {
        part = node_.Emit("mul", {part, Weights(x, d, taps.weights[t])});
      }
      sum = sum < 0 ? part : node_.Emit("add", {sum, part});
    }
    return Cropped(sum, d, axis);
  }

  int Weights(int x, int64_t d, const std::vector<double>& weights) {
    if (!node_.ok()) return NodeImport::kFailed;
    const proto::ElementType type = node_.type(x).type;
    if (!IsReal(type)) {
      node_.NotCovered("interpolation between integers");
      return NodeImport::kFailed;
    }
    return node_.AlongAxis(
        node_.Constant(Array::Reals(
            type, {static_cast<int64_t>(weights.size())}, weights)),
        d, node_.rank(x));
  }

  NodeImport& node_;
  std::string mode_, transform_, nearest_;
  std::vector<Axis> axes_;
};

}  // namespace

void AddResizeRules(ImportRules& rules) {
  rules["Resize"] = [](NodeImport& node) {
    const int x = node.In(0);
    if (node.opset() < 11) {
      return Resize(node).Run(x, -1, node.InOr(1), -1);
    }
    // Empty tensors stand for operands that are left out, too.
    int scales = node.InOr(2);
    const int sizes = node.InOr(3);
    if (scales >= 0 && sizes >= 0 && Elements(node.dims(scales)) == 0) {
      scales = -1;
    }
    if (sizes >= 0) scales = -1;
    return Resize(node).Run(x, node.InOr(1), scales, sizes);
  };
  rules["Upsample"] = [](NodeImport& node) {
    return Resize(node).Run(node.In(0), -1, node.InOr(1), -1);
  };
}

}  // namespace optrail::graph
