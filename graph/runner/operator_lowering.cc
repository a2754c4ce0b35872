#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/ir/ops.h"
#include "graph/runner/lowering.h"

namespace optrail::graph {
namespace {

// Adds nothing for "", which stands for the default.
void AddVariant(optrail::proto::Shape& shape, const char* name,
                const std::string& variant) {
  if (variant.empty()) return;
  optrail::proto::Attribute& attribute = *shape.add_attributes();
  attribute.set_name(name);
  attribute.set_variant(variant);
}

}  // namespace

void Lowering::AddDim(optrail::proto::Shape& shape, const char* name,
                      int64_t value) {
  optrail::proto::Dim& dim = *shape.add_dims();
  dim.set_name(name);
  dim.set_value(value);
}

optrail::proto::Shape Lowering::Typed(optrail::proto::Shape shape,
                                      proto::ElementType type) {
  shape.add_data_types(type == proto::ELEMENT_F32 ? optrail::proto::F32
                                                  : optrail::proto::BF16);
  return shape;
}

absl::Status Lowering::Computes(const std::string& kernel,
                                const optrail::proto::Shape& shape) const {
  if (target_.computes != nullptr) return target_.computes(kernel, shape);
  if (shape.data_types(0) == optrail::proto::F32) return absl::OkStatus();
  return absl::UnimplementedError("our operators are in f32");
}

absl::Status Lowering::AddOperator(int n, const char* kernel,
                                   std::vector<View> operands,
                                   optrail::proto::Shape shape) {
  Step step;
  step.kernel = kernel;
  step.operands = std::move(operands);
  step.packs = step.operands.size() > 2 && !IsPrepared(step.operands[1]);
  step.shape = std::move(shape);
  Add(std::move(step), {n});
  return absl::OkStatus();
}

absl::Status Lowering::AddLoops(int n, GeneratedKernel code,
                                std::vector<View> operands, bool in_place,
                                const absl::Status& why) {
  if (code.source.empty()) return Reference(n);
  Step step;
  step.kernel = "generated";
  step.code = std::move(code);
  step.operands = std::move(operands);
  step.in_place = in_place;
  step.why = std::string(why.message());
  Add(std::move(step), {n});
  return absl::OkStatus();
}

View Lowering::Converted(const View& x, proto::ElementType type, int n) {
  if (x.type.type == type) return Dense(x, n);
  const View y = NewView({type, x.type.dims}, Storage::Kind::kArena);
  Expression expression;
  const int from = expression.Load(0, x.type.type, x.strides, x.offset);
  Node cast;
  cast.op = "cast";
  expression.Emit(cast, {from}, type);
  Step step;
  step.name =
      absl::StrCat(graph_.nodes[n].name, " (to ", ElementTypeName(type), ")");
  step.kernel = "generated";
  step.operands = {x, y};
  step.code = target_.printer->Loop(expression, x.type.dims, y.strides, 1);
  Add(std::move(step), {n});
  return y;
}

absl::Status Lowering::Product(int n) {
  const Node& node = graph_.nodes[n];
  const View &a = ViewOf(node.inputs[0]), &b = ViewOf(node.inputs[1]);
  const TensorType& type = graph_.type(node.outputs[0]);
  if (!IsFloat(a) || Elements(type.dims) == 0 || a.type.dims.empty() ||
      a.type.dims.back() == 0) {
    return Reference(n);
  }
  if (b.type.dims.size() == 2 && a.type.dims.size() >= 2) {
    return ByMatrix(n, a, b, type);
  }
  if (a.type.dims.size() < 3 || a.type.dims.size() != b.type.dims.size() ||
      node.op != "matmul") {
    return ProductByLoops(
        n, absl::UnimplementedError("operands of different ranks"));
  }
  return Batched(n, a, b, type);
}

absl::Status Lowering::ByMatrix(int n, const View& a, const View& b,
                                const TensorType& type) {
  const Node& node = graph_.nodes[n];
  const int64_t k = b.type.dims[0];
  const int64_t rows = Elements(type.dims) / b.type.dims[1];
  // Layers keep their weights packed, products do not.
  const bool is_layer = node.op == "linear" || IsPrepared(b);
  const char* const kernel = is_layer ? "linear" : "matmul";
  // Weights that are prepared once may as well have rows that begin where the
  // bulk copy engine reads: a head of 50257 columns took twice as long.
  const int64_t aligned =
      std::max<int64_t>(target_.operand_bytes / ElementBytes(type.type), 1);
  const bool pads = is_layer && IsPrepared(b) && b.type.dims[1] > aligned;
  const int64_t cols = pads ? (b.type.dims[1] + aligned - 1) / aligned * aligned
                            : b.type.dims[1];
  optrail::proto::Shape shape;
  AddDim(shape, "m", rows);
  AddDim(shape, "n", cols);
  AddDim(shape, "k", k);
  AddVariant(shape, "activation", node.Text("activation"));
  shape = Typed(std::move(shape), a.type.type);
  if (const absl::Status here = Computes(kernel, shape); !here.ok()) {
    return ProductByLoops(n, here);
  }
  std::vector<View> operands = {Dense(a, n), WithColumns(b, cols, n)};
  if (is_layer) {
    const bool has_bias = node.inputs.size() > 2 && node.inputs[2] >= 0;
    operands.push_back(
        has_bias ? WithColumns(ViewOf(node.inputs[2]), cols, n)
                 : NewView({type.type, {cols}}, Storage::Kind::kConstant));
  }
  TensorType padded = type;
  padded.dims.back() = cols;
  View y = NewView(padded, Storage::Kind::kArena);
  operands.push_back(y);
  y.type = type;
  views_[node.outputs[0]] = y;
  return AddOperator(n, kernel, std::move(operands), std::move(shape));
}

View Lowering::WithColumns(const View& x, int64_t columns, int n) {
  const size_t last = x.type.dims.size() - 1;
  if (x.type.dims[last] == columns) return Dense(x, n);
  TensorType type = x.type;
  type.dims[last] = columns;
  const View y = NewView(type, Storage::Kind::kArena);
  View zeros = NewView({type.type, {1}}, Storage::Kind::kConstant);
  zeros.type.dims = type.dims;
  zeros.type.dims[last] = columns - x.type.dims[last];
  zeros.strides.assign(type.dims.size(), 0);
  std::vector<ConcatPart> parts(2);
  parts[0].expression.Load(0, x.type.type, x.strides, x.offset);
  parts[0].dims = x.type.dims;
  parts[1].expression.Load(1, x.type.type, zeros.strides);
  parts[1].dims = zeros.type.dims;
  parts[1].y_offset = x.type.dims[last];
  Step step;
  step.name = absl::StrCat(graph_.nodes[n].name, " (padded)");
  step.kernel = "generated";
  step.code = target_.printer->Concat(parts, y.strides, 2);
  step.operands = {x, zeros, y};
  Add(std::move(step), {n});
  return y;
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
  AddVariant(shape, "transposed", transposed ? "b" : "");
  shape = Typed(std::move(shape), a.type.type);
  if (const absl::Status here = Computes("batched_matmul", shape); !here.ok()) {
    return ProductByLoops(n, here);
  }
  const View left = Dense(expanded(a, a_dims), n);
  const View right = Dense(transposed ? turned : b, n);
  const View y = NewView(type, Storage::Kind::kArena);
  views_[graph_.nodes[n].outputs[0]] = y;
  return AddOperator(n, "batched_matmul", {left, right, y}, std::move(shape));
}

absl::Status Lowering::ProductByLoops(int n, const absl::Status& why) {
  const Node& node = graph_.nodes[n];
  const View &a = ViewOf(node.inputs[0]), &b = ViewOf(node.inputs[1]);
  const TensorType& type = graph_.type(node.outputs[0]);
  const size_t rank = type.dims.size();
  if (a.type.dims.size() < 2 || b.type.dims.size() < 2 || rank < 2) {
    return Reference(n);
  }
  const View y = NewView(type, Storage::Kind::kArena);
  ProductLoops loops;
  loops.type = type.type;
  loops.activation = node.Text("activation");
  const auto split = [&](const View& view, Dims* batch, int64_t* rows,
                         int64_t* columns) {
    Dims dims = type.dims;
    const size_t own = view.type.dims.size();
    dims[rank - 2] = view.type.dims[own - 2];
    dims[rank - 1] = view.type.dims[own - 1];
    *batch = StridesAlong(view, dims);
    *columns = batch->back();
    batch->pop_back();
    *rows = batch->back();
    batch->pop_back();
  };
  split(a, &loops.a_batch, &loops.a_m, &loops.a_k);
  split(b, &loops.b_batch, &loops.b_k, &loops.b_n);
  split(y, &loops.y_batch, &loops.y_m, &loops.y_n);
  loops.batch.assign(type.dims.begin(), type.dims.end() - 2);
  loops.m = type.dims[rank - 2];
  loops.n = type.dims[rank - 1];
  loops.k = a.type.dims.back();
  // Rows of several matrices that share their right factor are rows of one.
  while (!loops.batch.empty() &&
         (loops.batch.back() == 1 ||
          (loops.b_batch.back() == 0 &&
           loops.a_batch.back() == loops.m * loops.a_m &&
           loops.y_batch.back() == loops.m * loops.y_m))) {
    loops.m *= loops.batch.back();
    for (Dims* dims :
         {&loops.batch, &loops.a_batch, &loops.b_batch, &loops.y_batch}) {
      dims->pop_back();
    }
  }
  loops.has_bias = node.inputs.size() > 2 && node.inputs[2] >= 0;
  std::vector<View> operands = {a, b};
  if (loops.has_bias) operands.push_back(Dense(ViewOf(node.inputs[2]), n));
  operands.push_back(y);
  views_[node.outputs[0]] = y;
  return AddLoops(n, target_.printer->Product(loops), std::move(operands),
                  /*in_place=*/false, why);
}

absl::Status Lowering::Attention(int n) {
  const Node& node = graph_.nodes[n];
  const View& q = ViewOf(node.inputs[0]);
  View k = ViewOf(node.inputs[1]);
  std::swap(k.type.dims[2], k.type.dims[3]);
  std::swap(k.strides[2], k.strides[3]);
  if (!IsFloat(q) || Elements(q.type.dims) == 0 || Elements(k.type.dims) == 0) {
    return Reference(n);
  }
  optrail::proto::Shape shape;
  AddDim(shape, "batch", q.type.dims[0]);
  AddDim(shape, "heads", q.type.dims[1]);
  AddDim(shape, "queries", q.type.dims[2]);
  AddDim(shape, "keys", k.type.dims[2]);
  AddDim(shape, "d", q.type.dims[3]);
  AddVariant(shape, "causal", node.Text("causal"));
  shape = Typed(std::move(shape), q.type.type);
  if (!Computes("attention", shape).ok()) return Reference(n);
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
  if (!IsFloat(x) || Elements(dims) == 0 ||
      node.Int("axis") + 1 != static_cast<int64_t>(dims.size())) {
    return Reference(n);
  }
  optrail::proto::Shape shape;
  AddDim(shape, "rows", Elements(dims) / dims.back());
  AddDim(shape, "cols", dims.back());
  shape = Typed(std::move(shape), x.type.type);
  if (!Computes("softmax", shape).ok()) return Reference(n);
  const View from = Dense(x, n);
  const View y = NewView(from.type, Storage::Kind::kArena);
  views_[node.outputs[0]] = y;
  return AddOperator(n, "softmax", {from, y}, std::move(shape));
}

absl::Status Lowering::RowNorm(int n) {
  const Node& node = graph_.nodes[n];
  const View x = Dense(ViewOf(node.inputs[0]), n);
  if (!IsFloat(x) || Elements(x.type.dims) == 0) return Reference(n);
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
  absl::Status here = absl::UnimplementedError("another epsilon");
  if (std::abs(node.Real("epsilon") - kOurs) < 1e-9 && has_bias == centred) {
    const char* const kernel = centred ? "layer_norm" : "rms_norm";
    optrail::proto::Shape shape;
    AddDim(shape, "rows", rows);
    AddDim(shape, "cols", cols);
    shape = Typed(std::move(shape), x.type.type);
    here = Computes(kernel, shape);
    if (here.ok()) {
      return AddOperator(n, kernel, std::move(operands), std::move(shape));
    }
  }
  RowNormLoops loops;
  loops.type = x.type.type;
  loops.rows = rows;
  loops.cols = cols;
  loops.epsilon = node.Real("epsilon");
  loops.centred = centred;
  loops.has_bias = has_bias;
  return AddLoops(n, target_.printer->RowNorm(loops), std::move(operands),
                  /*in_place=*/true, here);
}

absl::Status Lowering::NormOfSum(int n) {
  const Node& node = graph_.nodes[n];
  const TensorType& type = graph_.type(node.outputs[0]);
  RowNormLoops loops;
  loops.type = type.type;
  for (size_t d = node.Int("axis"); d < type.dims.size(); ++d) {
    loops.cols *= type.dims[d];
  }
  loops.rows = Elements(type.dims) / loops.cols;
  loops.epsilon = node.Real("epsilon");
  loops.centred = node.op == "add_layer_norm";
  loops.has_bias = node.inputs.size() > 3;
  loops.of_sum = true;
  loops.keeps_sum = groups_.consumers[node.outputs[1]] > 0;
  Step step;
  step.kernel = "generated";
  if (Elements(type.dims) > 0) step.code = target_.printer->RowNorm(loops);
  if (step.code.source.empty()) return Reference(n);
  for (const int input : node.inputs) {
    step.operands.push_back(Dense(ViewOf(input), n));
  }
  step.results = loops.keeps_sum ? 2 : 1;
  for (int i = 0; i < step.results; ++i) {
    views_[node.outputs[i]] = NewView(type, Storage::Kind::kArena);
    step.operands.push_back(views_[node.outputs[i]]);
  }
  step.in_place = true;
  Add(std::move(step), {n});
  return absl::OkStatus();
}

bool Lowering::IsImage(const View& x) {
  return IsFloat(x) && x.type.dims.size() == 4 && Elements(x.type.dims) > 0;
}

WindowLoops Lowering::LoopsOf(const Node& node, const View& x, const View& y,
                              const Dims& kernel) const {
  WindowLoops loops;
  loops.type = x.type.type;
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
  absl::Status here =
      absl::UnimplementedError("grouped, dilated, uneven or with a bias");
  if (even && !has_bias && loops.group == 1) {
    const char* const kernel = is_fused ? "conv_bn_relu" : "conv2d";
    optrail::proto::Shape shape = ShapeOfConv(loops);
    here = Computes(kernel, shape);
    if (here.ok()) {
      std::vector<View> operands = {x, weights};
      for (size_t i = 2; i < node.inputs.size(); ++i) {
        // Scale and shift.
        operands.push_back(
            Converted(ViewOf(node.inputs[i]), proto::ELEMENT_F32, n));
      }
      operands.push_back(y);
      return AddOperator(n, kernel, std::move(operands), std::move(shape));
    }
  }
  if (is_fused) return Reference(n);
  std::vector<View> operands = {x, weights};
  if (has_bias) operands.push_back(Dense(ViewOf(node.inputs[2]), n));
  operands.push_back(y);
  WindowLoops with = loops;
  with.has_bias = has_bias;
  return AddLoops(n, target_.printer->Conv(with), std::move(operands),
                  /*in_place=*/false, here);
}

optrail::proto::Shape Lowering::ShapeOfConv(const WindowLoops& loops) {
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
  return Typed(std::move(shape), loops.type);
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
  views_[node.outputs[0]] = y;
  return AddLoops(n,
                  target_.printer->Pool(
                      LoopsOf(node, x, y, node.Ints("kernel")),
                      node.op == "max_pool", node.Int("count_padding") != 0),
                  {x, y}, /*in_place=*/false, absl::OkStatus());
}

}  // namespace optrail::graph
