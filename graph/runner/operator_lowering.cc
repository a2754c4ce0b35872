#include <cmath>

#include "graph/ir/ops.h"
#include "graph/runner/lowering.h"

namespace optrail::graph {

void Lowering::AddDim(optrail::proto::Shape& shape, const char* name,
                      int64_t value) {
  optrail::proto::Dim& dim = *shape.add_dims();
  dim.set_name(name);
  dim.set_value(value);
}

void Lowering::Finish(optrail::proto::Shape& shape) {
  shape.add_data_types(optrail::proto::F32);
}

absl::Status Lowering::AddOperator(int n, const char* kernel,
                                   std::vector<View> operands,
                                   optrail::proto::Shape shape) {
  Step step;
  step.kernel = kernel;
  step.operands = std::move(operands);
  step.packs = step.operands.size() > 2 && !IsPrepared(step.operands[1]);
  step.shape = std::move(shape);
  Finish(step.shape);
  Add(std::move(step), {n});
  return absl::OkStatus();
}

absl::Status Lowering::Product(int n) {
  const Node& node = graph_.nodes[n];
  const View &a = ViewOf(node.inputs[0]), &b = ViewOf(node.inputs[1]);
  const TensorType& type = graph_.type(node.outputs[0]);
  if (!IsF32(a) || Elements(type.dims) == 0 || a.type.dims.empty() ||
      a.type.dims.back() == 0) {
    return Reference(n);
  }
  if (b.type.dims.size() == 2 && a.type.dims.size() >= 2) {
    return ByMatrix(n, a, b, type);
  }
  if (a.type.dims.size() < 3 || a.type.dims.size() != b.type.dims.size() ||
      node.op != "matmul") {
    return Reference(n);
  }
  return Batched(n, a, b, type);
}

absl::Status Lowering::ByMatrix(int n, const View& a, const View& b,
                                const TensorType& type) {
  const Node& node = graph_.nodes[n];
  const int64_t k = b.type.dims[0], cols = b.type.dims[1];
  const int64_t rows = Elements(type.dims) / cols;
  std::vector<View> operands = {Dense(a, n), Dense(b, n)};
  // Layers keep their weights packed, products do not.
  const bool is_layer = node.op == "linear" || IsPrepared(operands[1]);
  const char* const kernel = is_layer ? "linear" : "matmul";
  optrail::proto::Shape shape;
  AddDim(shape, "m", rows);
  AddDim(shape, "n", cols);
  AddDim(shape, "k", k);
  if (is_layer) {
    const bool has_bias = node.inputs.size() > 2 && node.inputs[2] >= 0;
    operands.push_back(has_bias ? Dense(ViewOf(node.inputs[2]), n)
                                : NewView({proto::ELEMENT_F32, {cols}},
                                          Storage::Kind::kConstant));
  }
  if (!node.Text("activation").empty()) {
    optrail::proto::Attribute& activation = *shape.add_attributes();
    activation.set_name("activation");
    activation.set_variant(node.Text("activation"));
  }
  const View y = NewView(type, Storage::Kind::kArena);
  operands.push_back(y);
  views_[node.outputs[0]] = y;
  return AddOperator(n, kernel, std::move(operands), std::move(shape));
}

absl::Status Lowering::Batched(int n, const View& a, View b,
                               const TensorType& type) {
  const size_t rank = type.dims.size();
  Dims a_dims = type.dims, b_dims = type.dims;
  a_dims[rank - 1] = a.type.dims[rank - 1];
  b_dims[rank - 2] = a.type.dims[rank - 1];
  const auto expanded = [&](View view, const Dims& dims) {
    view.strides = StridesAlong(view, dims);
    view.type.dims = dims;
    return view;
  };
  b = expanded(b, b_dims);
  View turned = b;
  std::swap(turned.strides[rank - 1], turned.strides[rank - 2]);
  std::swap(turned.type.dims[rank - 1], turned.type.dims[rank - 2]);
  const bool transposed = !IsDense(b) && IsDense(turned);
  optrail::proto::Shape shape;
  AddDim(shape, "batch",
         Elements(Dims(type.dims.begin(), type.dims.end() - 2)));
  AddDim(shape, "m", type.dims[rank - 2]);
  AddDim(shape, "n", type.dims[rank - 1]);
  AddDim(shape, "k", a_dims[rank - 1]);
  if (transposed) {
    optrail::proto::Attribute& attribute = *shape.add_attributes();
    attribute.set_name("transposed");
    attribute.set_variant("b");
  }
  const View left = Dense(expanded(a, a_dims), n);
  const View right = transposed ? turned : Dense(b, n);
  const View y = NewView(type, Storage::Kind::kArena);
  views_[graph_.nodes[n].outputs[0]] = y;
  return AddOperator(n, "batched_matmul", {left, right, y}, std::move(shape));
}

absl::Status Lowering::Attention(int n) {
  const Node& node = graph_.nodes[n];
  const View& q = ViewOf(node.inputs[0]);
  View k = ViewOf(node.inputs[1]);
  std::swap(k.type.dims[2], k.type.dims[3]);
  std::swap(k.strides[2], k.strides[3]);
  if (!IsF32(q) || Elements(q.type.dims) == 0 || Elements(k.type.dims) == 0) {
    return Reference(n);
  }
  optrail::proto::Shape shape;
  AddDim(shape, "batch", q.type.dims[0]);
  AddDim(shape, "heads", q.type.dims[1]);
  AddDim(shape, "queries", q.type.dims[2]);
  AddDim(shape, "keys", k.type.dims[2]);
  AddDim(shape, "d", q.type.dims[3]);
  if (!node.Text("causal").empty()) {
    optrail::proto::Attribute& causal = *shape.add_attributes();
    causal.set_name("causal");
    causal.set_variant(node.Text("causal"));
  }
  std::vector<View> operands = {Dense(q, n), Dense(k, n),
                                Dense(ViewOf(node.inputs[2]), n)};
  const View y = NewView(q.type, Storage::Kind::kArena);
  operands.push_back(y);
  views_[node.outputs[0]] = y;
  return AddOperator(n, "attention", std::move(operands), std::move(shape));
}

absl::Status Lowering::Softmax(int n) {
  const Node& node = graph_.nodes[n];
  const View& x = ViewOf(node.inputs[0]);
  const Dims& dims = x.type.dims;
  if (!IsF32(x) || Elements(dims) == 0 ||
      node.Int("axis") + 1 != static_cast<int64_t>(dims.size())) {
    return Reference(n);
  }
  optrail::proto::Shape shape;
  AddDim(shape, "rows", Elements(dims) / dims.back());
  AddDim(shape, "cols", dims.back());
  const View from = Dense(x, n);
  const View y = NewView(from.type, Storage::Kind::kArena);
  views_[node.outputs[0]] = y;
  return AddOperator(n, "softmax", {from, y}, std::move(shape));
}

absl::Status Lowering::RowNorm(int n) {
  const Node& node = graph_.nodes[n];
  const View x = Dense(ViewOf(node.inputs[0]), n);
  if (!IsF32(x) || Elements(x.type.dims) == 0) return Reference(n);
  int64_t cols = 1;
  for (size_t d = node.Int("axis"); d < x.type.dims.size(); ++d) {
    cols *= x.type.dims[d];
  }
  const int64_t rows = Elements(x.type.dims) / cols;
  const bool centred = node.op == "layer_norm";
  const bool has_bias = node.inputs.size() > 2 && node.inputs[2] >= 0;
  std::vector<View> operands = {x};
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] >= 0) {
      operands.push_back(Dense(ViewOf(node.inputs[i]), n));
    }
  }
  const View y = NewView(x.type, Storage::Kind::kArena);
  operands.push_back(y);
  views_[node.outputs[0]] = y;
  // Our operators have one epsilon.
  constexpr double kOurs = 1e-5;
  if (std::abs(node.Real("epsilon") - kOurs) < 1e-9 && has_bias == centred) {
    optrail::proto::Shape shape;
    AddDim(shape, "rows", rows);
    AddDim(shape, "cols", cols);
    return AddOperator(n, centred ? "layer_norm" : "rms_norm",
                       std::move(operands), std::move(shape));
  }
  Step step;
  step.kernel = "generated";
  step.operands = std::move(operands);
  RowNormLoops loops{rows, cols, node.Real("epsilon")};
  loops.centred = centred;
  loops.has_bias = has_bias;
  step.source = RowNormSource(loops);
  step.in_place = true;
  Add(std::move(step), {n});
  return absl::OkStatus();
}

absl::Status Lowering::NormOfSum(int n) {
  const Node& node = graph_.nodes[n];
  const TensorType& type = graph_.type(node.outputs[0]);
  if (type.type != proto::ELEMENT_F32 || Elements(type.dims) == 0) {
    return Reference(n);
  }
  Step step;
  step.kernel = "generated";
  for (const int input : node.inputs) {
    step.operands.push_back(Dense(ViewOf(input), n));
  }
  RowNormLoops loops;
  for (size_t d = node.Int("axis"); d < type.dims.size(); ++d) {
    loops.cols *= type.dims[d];
  }
  loops.rows = Elements(type.dims) / loops.cols;
  loops.epsilon = node.Real("epsilon");
  loops.centred = node.op == "add_layer_norm";
  loops.has_bias = node.inputs.size() > 3;
  loops.of_sum = true;
  loops.keeps_sum = groups_.consumers[node.outputs[1]] > 0;
  step.results = loops.keeps_sum ? 2 : 1;
  for (int i = 0; i < step.results; ++i) {
    views_[node.outputs[i]] = NewView(type, Storage::Kind::kArena);
    step.operands.push_back(views_[node.outputs[i]]);
  }
  step.source = RowNormSource(loops);
  step.in_place = true;
  Add(std::move(step), {n});
  return absl::OkStatus();
}

bool Lowering::IsImage(const View& x) {
  return IsF32(x) && x.type.dims.size() == 4 && Elements(x.type.dims) > 0;
}

WindowLoops Lowering::LoopsOf(const Node& node, const View& x, const View& y,
                              const Dims& kernel) const {
  WindowLoops loops;
  loops.x_dims = x.type.dims;
  loops.x_strides = x.strides;
  loops.y_dims = y.type.dims;
  loops.y_strides = y.strides;
  for (int d = 0; d < 2; ++d) {
    loops.kernel[d] = kernel[d];
    loops.stride[d] = node.Ints("strides")[d];
    loops.begin[d] = node.Ints("begin")[d];
    loops.end[d] = node.Ints("end")[d];
    loops.dilation[d] = node.Ints("dilations")[d];
  }
  loops.group = node.Int("group", 1);
  return loops;
}

View Lowering::Filters(int value, int n) {
  View weights = ViewOf(value);
  const View old = weights;
  constexpr int kOrder[] = {2, 3, 1, 0};
  for (int d = 0; d < 4; ++d) {
    weights.type.dims[d] = old.type.dims[kOrder[d]];
    weights.strides[d] = old.strides[kOrder[d]];
  }
  return Dense(weights, n);
}

absl::Status Lowering::Conv(int n) {
  const Node& node = graph_.nodes[n];
  if (!IsImage(ViewOf(node.inputs[0]))) return Reference(n);
  const View x = ChannelsLast(ViewOf(node.inputs[0]), n);
  const View weights = Filters(node.inputs[1], n);
  const TensorType& type = graph_.type(node.outputs[0]);
  const View y = NewView(type, Storage::Kind::kArena, -1, {0, 2, 3, 1});
  views_[node.outputs[0]] = y;
  const WindowLoops loops =
      LoopsOf(node, x, y, {weights.type.dims[0], weights.type.dims[1]});
  const bool is_fused = node.op == "conv_bn_relu";
  const bool has_bias =
      !is_fused && node.inputs.size() > 2 && node.inputs[2] >= 0;
  const bool even =
      loops.stride[0] == loops.stride[1] && loops.begin[0] == loops.begin[1] &&
      loops.end[0] == loops.begin[0] && loops.end[1] == loops.begin[0] &&
      loops.begin[0] >= 0 && loops.dilation[0] == 1 && loops.dilation[1] == 1;
  if (even && !has_bias && loops.group == 1) {
    std::vector<View> operands = {x, weights};
    for (size_t i = 2; i < node.inputs.size(); ++i) {
      operands.push_back(Dense(ViewOf(node.inputs[i]), n));
    }
    return OurConv(n, is_fused ? "conv_bn_relu" : "conv2d", loops,
                   std::move(operands), y);
  }
  if (is_fused) return Reference(n);
  Step step;
  step.kernel = "generated";
  step.operands = {x, weights};
  if (has_bias) step.operands.push_back(Dense(ViewOf(node.inputs[2]), n));
  step.operands.push_back(y);
  WindowLoops with = loops;
  with.has_bias = has_bias;
  step.source = ConvSource(with);
  Add(std::move(step), {n});
  return absl::OkStatus();
}

absl::Status Lowering::OurConv(int n, const char* kernel,
                               const WindowLoops& loops,
                               std::vector<View> operands, const View& y) {
  optrail::proto::Shape shape;
  AddDim(shape, "n", loops.x_dims[0]);
  AddDim(shape, "h", loops.x_dims[2]);
  AddDim(shape, "w", loops.x_dims[3]);
  AddDim(shape, "c", loops.x_dims[1]);
  AddDim(shape, "k", loops.y_dims[1]);
  AddDim(shape, "r", loops.kernel[0]);
  AddDim(shape, "s", loops.kernel[1]);
  const auto add = [&](const char* name, int64_t value) {
    optrail::proto::Attribute& attribute = *shape.add_attributes();
    attribute.set_name(name);
    attribute.set_int_(value);
  };
  if (loops.begin[0] != 0) add("padding", loops.begin[0]);
  if (loops.stride[0] != 1) add("stride", loops.stride[0]);
  operands.push_back(y);
  return AddOperator(n, kernel, std::move(operands), std::move(shape));
}

absl::Status Lowering::Pool(int n) {
  const Node& node = graph_.nodes[n];
  const View& x = ViewOf(node.inputs[0]);
  // Places of maxima are computed where somebody reads them.
  const bool wants_places =
      node.outputs.size() > 1 && groups_.consumers[node.outputs[1]] > 0;
  if (!IsImage(x) || wants_places) return Reference(n);
  const View y = NewView(graph_.type(node.outputs[0]), Storage::Kind::kArena,
                         -1, MemoryOrder(x));
  Step step;
  step.kernel = "generated";
  step.operands = {x, y};
  step.source =
      PoolSource(LoopsOf(node, x, y, node.Ints("kernel")),
                 node.op == "max_pool", node.Int("count_padding") != 0);
  views_[node.outputs[0]] = y;
  Add(std::move(step), {n});
  return absl::OkStatus();
}

}  // namespace optrail::graph
