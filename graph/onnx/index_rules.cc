#include <algorithm>
#include <numeric>

#include "graph/onnx/node_import.h"

namespace optrail::graph {
namespace {

using Results = std::vector<int>;

// Indices of other integer types become i64.
int Indices(NodeImport& node, int value) {
  const proto::ElementType type = node.type(value).type;
  return type == proto::ELEMENT_I32 || type == proto::ELEMENT_I64
             ? value
             : node.Cast(value, proto::ELEMENT_I64);
}

Results Gather(NodeImport& node) {
  const int x = node.In(0), at = Indices(node, node.In(1));
  const int64_t axis = node.Axis(node.Int("axis", 0), node.rank(x));
  // A constant index is a slice, which kernels read in place.
  if (node.ok() && node.rank(at) == 0) {
    const Dims known = node.KnownOrNothing(at);
    const int64_t size = node.dims(x)[axis];
    if (known.size() == 1 && known[0] >= -size && known[0] < size) {
      const int64_t index = known[0] < 0 ? known[0] + size : known[0];
      const int row = node.Slice(x, axis, index, 1);
      Dims to = node.dims(row);
      if (node.ok()) to.erase(to.begin() + axis);
      return {node.Reshape(row, to)};
    }
  }
  return {node.Emit("gather", {x, at}, {{"axis", axis}})};
}

Results GatherElements(NodeImport& node) {
  const int x = node.In(0), at = Indices(node, node.In(1));
  const int64_t axis = node.Axis(node.Int("axis", 0), node.rank(x));
  return {node.Emit("gather_elements", {x, at}, {{"axis", axis}})};
}

Results GatherNd(NodeImport& node) {
  const int x = node.In(0), at = Indices(node, node.In(1));
  return {node.Emit("gather_nd", {x, at},
                    {{"batch_dims", node.Int("batch_dims", 0)}})};
}

std::string Reduction(NodeImport& node) {
  const std::string reduction = node.Text("reduction", "none");
  return reduction == "none" ? "" : reduction;
}

Results ScatterElements(NodeImport& node) {
  const int x = node.In(0), at = Indices(node, node.In(1));
  const int64_t axis = node.Axis(node.Int("axis", 0), node.rank(x));
  return {node.Emit("scatter_elements", {x, at, node.In(2)},
                    {{"axis", axis}, {"reduction", Reduction(node)}})};
}

Results ScatterNd(NodeImport& node) {
  const int x = node.In(0), at = Indices(node, node.In(1));
  return {node.Emit("scatter_nd", {x, at, node.In(2)},
                    {{"reduction", Reduction(node)}})};
}

Results TopK(NodeImport& node) {
  const int x = node.In(0);
  const Dims k =
      node.opset() < 10 ? Dims{node.Int("k", 0)} : node.KnownInts(1, "k");
  const int64_t axis = node.Axis(node.Int("axis", -1), node.rank(x));
  if (k.size() != 1) node.Wrong("expected one number as k");
  if (!node.ok()) return {};
  const int first = node.Emit(
      "top_k", {x},
      {{"axis", axis}, {"k", k[0]}, {"largest", node.Int("largest", 1)}});
  return {first, node.ok() ? first + 1 : first};
}

Results CumSum(NodeImport& node) {
  const int x = node.In(0);
  const Dims axis = node.KnownInts(1, "the axis");
  if (axis.size() != 1) node.Wrong("expected one number as the axis");
  if (!node.ok()) return {};
  return {node.Emit("cumsum", {x},
                    {{"axis", node.Axis(axis[0], node.rank(x))},
                     {"exclusive", node.Int("exclusive", 0)},
                     {"reverse", node.Int("reverse", 0)}})};
}

// 1 where `at` names the place along a new axis of `depth`, as booleans.
int IsPlace(NodeImport& node, int at, int64_t axis, int64_t depth) {
  if (!node.ok()) return NodeImport::kFailed;
  Dims with = node.dims(at), along(with.size() + 1, 1);
  with.insert(with.begin() + axis, 1);
  along[axis] = depth;
  Dims places(depth);
  std::iota(places.begin(), places.end(), 0);
  return node.Emit("equal",
                   {node.Reshape(at, with), node.IntConstant(places, along)});
}

Results OneHot(NodeImport& node) {
  int at = node.In(0);
  const int depth_value = node.In(1), values = node.In(2);
  const Array depth_array = node.Known(depth_value, "the depth");
  if (!node.ok()) return {};
  const double depth = depth_array.elements() == 1 ? depth_array.At(0) : -1;
  const int64_t rank = node.rank(at) + 1;
  const int64_t axis = node.Axis(node.Int("axis", -1), rank);
  if (!(depth >= 1 && depth <= (1 << 24)) || node.dims(values) != Dims{2}) {
    node.Wrong("expected a depth and two values");
  }
  if (!node.ok()) return {};
  const int64_t n = static_cast<int64_t>(depth);
  at = node.Cast(at, proto::ELEMENT_I64);
  // Those that are negative count from the end.
  const int below = node.Emit("less", {at, node.Scalar(at, 0)});
  at = node.Emit("where",
                 {below, node.Emit("add", {at, node.Scalar(at, depth)}), at});
  const int off = node.Reshape(node.Slice(values, 0, 0, 1), {});
  const int on = node.Reshape(node.Slice(values, 0, 1, 1), {});
  return {node.Emit("where", {IsPlace(node, at, axis, n), on, off})};
}

// 1 at the first of the largest, 0 elsewhere.
Results Hardmax(NodeImport& node) {
  const int x = node.In(0);
  if (!node.ok()) return {};
  const Dims dims = node.dims(x);
  const bool old = node.opset() < 13;
  int64_t axis = node.Axis(node.Int("axis", old ? 1 : -1), node.rank(x));
  if (!node.ok()) return {};
  int y = x;
  if (old) {
    const int64_t rows = Elements(Dims(dims.begin(), dims.begin() + axis));
    const int64_t cols = Elements(Dims(dims.begin() + axis, dims.end()));
    y = node.Reshape(x, {rows, cols});
    axis = 1;
  }
  const int64_t size = node.ok() ? node.dims(y)[axis] : 0;
  const int best =
      node.Emit("arg_max", {y}, {{"axis", axis}, {"keepdims", int64_t{0}}});
  const int hot = node.Cast(IsPlace(node, best, axis, size), node.type(x).type);
  return {node.Reshape(hot, dims)};
}

Results Compress(NodeImport& node) {
  int x = node.In(0);
  const Dims chosen = node.KnownInts(1, "the condition");
  if (!node.ok()) return {};
  if (!node.HasAttribute("axis")) {
    x = node.Reshape(x, {Elements(node.dims(x))});
  }
  const int64_t axis = node.Axis(node.Int("axis", 0), node.rank(x));
  if (!node.ok()) return {};
  Dims places;
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] != 0) places.push_back(static_cast<int64_t>(i));
  }
  return {node.Emit(
      "gather",
      {x, node.IntConstant(places, {static_cast<int64_t>(places.size())})},
      {{"axis", axis}})};
}

Results NonZero(NodeImport& node) {
  const Array x = node.Known(node.In(0), "the input");
  if (!node.ok()) return {};
  const Dims strides = RowMajorStrides(x.type.dims);
  const size_t rank = strides.size();
  std::vector<Dims> places(rank);
  for (int64_t i = 0; i < x.elements(); ++i) {
    if (x.At(i) == 0) continue;
    for (size_t d = 0; d < rank; ++d) {
      places[d].push_back(i / strides[d] % x.type.dims[d]);
    }
  }
  Dims all;
  for (const Dims& row : places) all.insert(all.end(), row.begin(), row.end());
  const int64_t found = rank == 0 ? 0 : static_cast<int64_t>(places[0].size());
  return {node.IntConstant(all, {static_cast<int64_t>(rank), found})};
}

// Each sequence is turned around up to its own, known length.
Results ReverseSequence(NodeImport& node) {
  const int x = node.In(0);
  const Dims lengths = node.KnownInts(1, "the lengths");
  const int64_t batch_axis = node.Int("batch_axis", 1);
  const int64_t time_axis = node.Int("time_axis", 0);
  if (!node.ok()) return {};
  const Dims dims = node.dims(x);
  if (dims.size() < 2 || std::min(batch_axis, time_axis) != 0 ||
      std::max(batch_axis, time_axis) != 1 ||
      static_cast<int64_t>(lengths.size()) != dims[batch_axis]) {
    node.Wrong("expected the axes 0 and 1, and a length for each sequence");
    return {};
  }
  Dims places(dims.size(), 1);
  places[0] = dims[0];
  places[1] = dims[1];
  if (dims[0] > (1 << 24) / std::max<int64_t>(dims[1], 1)) {
    node.NotCovered("more than 2^24 places");
    return {};
  }
  Dims from(dims[0] * dims[1]);
  for (int64_t i = 0; i < dims[0] * dims[1]; ++i) {
    const int64_t at[2] = {i / dims[1], i % dims[1]};
    const int64_t time = at[time_axis], length = lengths[at[batch_axis]];
    from[i] =
        time < length && length <= dims[time_axis] ? length - 1 - time : time;
  }
  const int at = node.Expand(node.IntConstant(from, places), dims);
  return {node.Emit("gather_elements", {x, at}, {{"axis", time_axis}})};
}

}  // namespace

void AddIndexRules(ImportRules& rules) {
  rules.insert({{"Compress", Compress},
                {"CumSum", CumSum},
                {"Gather", Gather},
                {"GatherElements", GatherElements},
                {"GatherND", GatherNd},
                {"Hardmax", Hardmax},
                {"NonZero", NonZero},
                {"OneHot", OneHot},
                {"ReverseSequence", ReverseSequence},
                {"Scatter", ScatterElements},
                {"ScatterElements", ScatterElements},
                {"ScatterND", ScatterNd},
                {"TopK", TopK}});
}

}  // namespace optrail::graph
