#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/ir/ops.h"
#include "graph/onnx/node_import.h"

namespace optrail::graph {
namespace {

using Results = std::vector<int>;

Results Identity(NodeImport& node) { return {node.In(0)}; }

Results Reshape(NodeImport& node) {
  const int x = node.In(0);
  Dims to =
      node.opset() < 5 ? node.Ints("shape") : node.KnownInts(1, "the shape");
  if (!node.ok()) return {};
  const Dims& from = node.dims(x);
  int64_t known = 1;
  int free = -1;
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d] == 0 && node.Int("allowzero", 0) == 0) {
      if (d >= from.size()) {
        node.Wrong(absl::StrCat("dimension ", d, " of ", TypeText(node.type(x)),
                                " cannot be kept"));
        return {};
      }
      to[d] = from[d];
    }
    if (to[d] == -1 && free == -1) {
      free = static_cast<int>(d);
    } else if (to[d] < 0 || to[d] > kMostElements ||
               known > kMostElements / std::max<int64_t>(to[d], 1)) {
      node.Wrong(absl::StrCat("the shape is [", absl::StrJoin(to, ","), "]"));
      return {};
    } else {
      known *= to[d];
    }
  }
  if (free >= 0) to[free] = known == 0 ? 0 : Elements(from) / known;
  return {node.Reshape(x, to)};
}

Results Flatten(NodeImport& node) {
  const int x = node.In(0);
  const int64_t rank = node.rank(x);
  int64_t axis = node.Int("axis", 1);
  // The rank itself is allowed.
  axis = axis == rank ? rank : node.Axis(axis, std::max<int64_t>(rank, 1));
  if (!node.ok()) return {};
  const Dims& dims = node.dims(x);
  return {node.Reshape(x, {Elements(Dims(dims.begin(), dims.begin() + axis)),
                           Elements(Dims(dims.begin() + axis, dims.end()))})};
}

// Axes were an attribute before opset 13, and are an input since.
Dims AxesOf(NodeImport& node) {
  return node.Has(1) ? node.KnownInts(1, "the axes") : node.Ints("axes");
}

Results Squeeze(NodeImport& node) {
  const int x = node.In(0);
  const bool all = !node.Has(1) && !node.HasAttribute("axes");
  const Dims axes = node.Axes(AxesOf(node), node.rank(x));
  if (!node.ok()) return {};
  Dims to;
  for (int64_t d = 0; d < node.rank(x); ++d) {
    const int64_t size = node.dims(x)[d];
    const bool named = std::binary_search(axes.begin(), axes.end(), d);
    if (named && size != 1) {
      node.Wrong(absl::StrCat("axis ", d, " of ", TypeText(node.type(x)),
                              " is not 1"));
    }
    if (!(named || (all && size == 1))) to.push_back(size);
  }
  return {node.Reshape(x, to)};
}

Results Unsqueeze(NodeImport& node) {
  const int x = node.In(0);
  const Dims given = AxesOf(node);
  const int64_t rank = node.rank(x) + static_cast<int64_t>(given.size());
  const Dims axes = node.Axes(given, rank);
  if (!node.ok()) return {};
  Dims to;
  size_t next = 0;
  for (int64_t d = 0; d < rank; ++d) {
    to.push_back(std::binary_search(axes.begin(), axes.end(), d)
                     ? 1
                     : node.dims(x)[next++]);
  }
  return {node.Reshape(x, to)};
}

Results Transpose(NodeImport& node) {
  const int x = node.In(0);
  Dims reversed(node.rank(x));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return {node.Transpose(x, node.Ints("perm", reversed))};
}

Results Expand(NodeImport& node) {
  const int x = node.In(0);
  const Dims shape = node.KnownInts(1, "the shape");
  if (!node.ok()) return {};
  const absl::StatusOr<Dims> to = Broadcast(node.dims(x), shape);
  if (!to.ok()) {
    node.Wrong(to.status().message());
    return {};
  }
  return {node.Expand(x, *to)};
}

struct SliceRange {
  int64_t start = 0, step = 1, size = 0;
};

// NumPy's rules: negative bounds count from the end, and all are clamped.
SliceRange RangeOf(int64_t start, int64_t end, int64_t step, int64_t size) {
  const auto clamp = [&](int64_t at) {
    if (at < 0) at = at < -size ? -1 : at + size;
    return step > 0 ? std::clamp<int64_t>(at, 0, size)
                    : std::clamp<int64_t>(at, -1, size - 1);
  };
  SliceRange range{clamp(start), step, 0};
  const int64_t last = clamp(end);
  const __int128 room = step > 0 ? static_cast<__int128>(last) - range.start
                                 : static_cast<__int128>(range.start) - last;
  const __int128 stride = step > 0 ? step : -static_cast<__int128>(step);
  range.size =
      room <= 0 ? 0 : static_cast<int64_t>((room + stride - 1) / stride);
  if (range.size == 0) range.start = 0;
  if (range.size <= 1) range.step = 1;
  return range;
}

Results Slice(NodeImport& node) {
  const int x = node.In(0);
  const bool old = node.opset() < 10;
  const Dims starts = old ? node.Ints("starts") : node.KnownInts(1, "starts");
  const Dims ends = old ? node.Ints("ends") : node.KnownInts(2, "ends");
  Dims axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (old) axes = node.Ints("axes", axes);
  if (!old && node.Has(3)) axes = node.KnownInts(3, "axes");
  if (!old && node.Has(4)) steps = node.KnownInts(4, "steps");
  if (!node.ok()) return {};
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    node.Wrong("starts, ends, axes and steps are not as many");
    return {};
  }
  const Dims& dims = node.dims(x);
  Dims first(dims.size(), 0), by(dims.size(), 1), to = dims;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = node.Axis(axes[i], node.rank(x));
    if (!node.ok()) return {};
    if (steps[i] == 0) {
      node.Wrong("a step is 0");
      return {};
    }
    const SliceRange range = RangeOf(starts[i], ends[i], steps[i], dims[axis]);
    first[axis] = range.start;
    by[axis] = range.step;
    to[axis] = range.size;
  }
  if (to == dims && by == Dims(dims.size(), 1)) return {x};
  return {node.Emit("slice", {x},
                    {{"starts", first}, {"steps", by}, {"dims", to}})};
}

Results Concat(NodeImport& node) {
  std::vector<int> parts;
  for (int i = 0; i < node.inputs(); ++i) parts.push_back(node.In(i));
  if (parts.empty()) node.In(0);
  if (!node.ok()) return {};
  const int64_t axis = node.Axis(node.Int("axis", node.opset() < 4 ? 1 : 0),
                                 node.rank(parts[0]));
  if (parts.size() == 1) return {parts[0]};
  return {node.Emit("concat", parts, {{"axis", axis}})};
}

Results Split(NodeImport& node) {
  const int x = node.In(0);
  const int64_t axis = node.Axis(node.Int("axis", 0), node.rank(x));
  if (!node.ok()) return {};
  const int64_t size = node.dims(x)[axis];
  const int64_t parts =
      node.Int("num_outputs", static_cast<int64_t>(node.onnx().outputs.size()));
  Dims sizes =
      node.Has(1) ? node.KnownInts(1, "the sizes") : node.Ints("split");
  if (!node.ok()) return {};
  if (sizes.empty() && parts > 0 && parts <= 1 << 20) {
    const int64_t each = (size + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) {
      sizes.push_back(std::clamp<int64_t>(size - i * each, 0, each));
    }
  }
  Results results;
  int64_t begin = 0;
  for (const int64_t part : sizes) {
    if (part < 0 || part > size - begin) {
      node.Wrong(
          absl::StrCat("sizes [", absl::StrJoin(sizes, ","), "] of ", size));
      return {};
    }
    results.push_back(node.Slice(x, axis, begin, part));
    begin += part;
  }
  if (begin != size) {
    node.Wrong(
        absl::StrCat("sizes [", absl::StrJoin(sizes, ","), "] of ", size));
  }
  return results;
}

Results Pad(NodeImport& node) {
  int x = node.In(0);
  const int64_t rank = node.rank(x);
  Dims pads = node.opset() < 11 ? node.Ints("pads", node.Ints("paddings"))
                                : node.KnownInts(1, "the pads");
  Dims axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (node.Has(3)) axes = node.KnownInts(3, "axes");
  if (!node.ok()) return {};
  if (pads.size() != 2 * axes.size()) {
    node.Wrong(absl::StrCat(pads.size(), " pads for ", axes.size(), " axes"));
    return {};
  }
  Dims before(rank, 0), after(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = node.Axis(axes[i], rank);
    if (!node.ok()) return {};
    before[axis] = pads[i];
    after[axis] = pads[i + axes.size()];
  }
  // A negative pad cuts elements off.
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t low = std::min<int64_t>(before[d], 0);
    const int64_t high = std::min<int64_t>(after[d], 0);
    if (low == 0 && high == 0) continue;
    if (low < -kMostElements || high < -kMostElements ||
        node.dims(x)[d] + low + high < 0) {
      node.Wrong(absl::StrCat("pads cut more than ", node.dims(x)[d], " off"));
      return {};
    }
    x = node.Slice(x, d, -low, node.dims(x)[d] + low + high);
    before[d] -= low;
    after[d] -= high;
    if (!node.ok()) return {};
  }
  std::vector<int> operands = {x};
  if (node.opset() >= 11 && node.Has(2)) operands.push_back(node.In(2));
  if (node.opset() < 11 && node.Real("value", 0) != 0) {
    operands.push_back(node.Scalar(x, node.Real("value", 0)));
  }
  return {node.Emit("pad", operands,
                    {{"before", before},
                     {"after", after},
                     {"mode", node.Text("mode", "constant")}})};
}

Results Tile(NodeImport& node) {
  const int x = node.In(0);
  const Dims repeats = node.KnownInts(1, "the repeats");
  if (!node.ok()) return {};
  const Dims& dims = node.dims(x);
  if (repeats.size() != dims.size()) {
    node.Wrong(
        absl::StrCat(repeats.size(), " repeats for ", TypeText(node.type(x))));
    return {};
  }
  Dims apart, repeated, joined;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (repeats[d] < 0 || repeats[d] > kMostElements ||
        dims[d] > kMostElements / std::max<int64_t>(repeats[d], 1)) {
      node.Wrong(absl::StrCat("repeats ", repeats[d], " of ", dims[d]));
      return {};
    }
    apart.insert(apart.end(), {1, dims[d]});
    repeated.insert(repeated.end(), {repeats[d], dims[d]});
    joined.push_back(repeats[d] * dims[d]);
  }
  return {node.Reshape(node.Expand(node.Reshape(x, apart), repeated), joined)};
}

// Blocks of a channel become pixels, or the other way round.
Results DepthToSpace(NodeImport& node) {
  const int x = node.In(0);
  const int64_t b = node.Int("blocksize", 0);
  if (!node.ok()) return {};
  const Dims d = node.dims(x);
  if (d.size() != 4 || b < 1 || b > (1 << 20) || d[1] % (b * b) != 0) {
    node.Wrong(absl::StrCat("blocksize=", b, " for ", TypeText(node.type(x))));
    return {};
  }
  const int64_t c = d[1] / (b * b);
  const int y =
      node.Text("mode", "DCR") == "DCR"
          ? node.Transpose(node.Reshape(x, {d[0], b, b, c, d[2], d[3]}),
                           {0, 3, 4, 1, 5, 2})
          : node.Transpose(node.Reshape(x, {d[0], c, b, b, d[2], d[3]}),
                           {0, 1, 4, 2, 5, 3});
  return {node.Reshape(y, {d[0], c, d[2] * b, d[3] * b})};
}

Results SpaceToDepth(NodeImport& node) {
  const int x = node.In(0);
  const int64_t b = node.Int("blocksize", 0);
  if (!node.ok()) return {};
  const Dims d = node.dims(x);
  if (d.size() != 4 || b < 1 || b > (1 << 20) || d[2] % b != 0 ||
      d[3] % b != 0) {
    node.Wrong(absl::StrCat("blocksize=", b, " for ", TypeText(node.type(x))));
    return {};
  }
  const int y =
      node.Transpose(node.Reshape(x, {d[0], d[1], d[2] / b, b, d[3] / b, b}),
                     {0, 3, 5, 1, 2, 4});
  return {node.Reshape(y, {d[0], d[1] * b * b, d[2] / b, d[3] / b})};
}

}  // namespace

void AddShapeRules(ImportRules& rules) {
  rules.insert({{"Concat", Concat},
                {"DepthToSpace", DepthToSpace},
                {"Expand", Expand},
                {"Flatten", Flatten},
                {"Identity", Identity},
                {"Pad", Pad},
                {"Reshape", Reshape},
                {"Slice", Slice},
                {"SpaceToDepth", SpaceToDepth},
                {"Split", Split},
                {"Squeeze", Squeeze},
                {"Tile", Tile},
                {"Transpose", Transpose},
                {"Unsqueeze", Unsqueeze}});
}

}  // namespace optrail::graph
