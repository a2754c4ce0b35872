#include <algorithm>
#include <functional>
#include <utility>

#include "graph/ir/ops.h"
#include "graph/runner/lowering.h"

namespace optrail::graph {

absl::Status Lowering::Move(int n) {
  const Node& node = graph_.nodes[n];
  View view = ViewOf(node.inputs[0]);
  const TensorType& type = graph_.type(node.outputs[0]);
  if (node.op == "transpose") {
    const Dims from = view.strides;
    for (size_t d = 0; d < from.size(); ++d) {
      view.strides[d] = from[node.Ints("perm")[d]];
    }
  } else if (node.op == "slice") {
    const Dims starts = node.Ints("starts"), steps = node.Ints("steps");
    for (size_t d = 0; d < starts.size(); ++d) {
      if (type.dims[d] > 0) view.offset += starts[d] * view.strides[d];
      view.strides[d] *= steps[d];
    }
  } else if (node.op == "expand") {
    const Dims& dims = view.type.dims;
    Dims strides(type.dims.size(), 0);
    for (size_t d = 0; d < dims.size(); ++d) {
      const size_t to = type.dims.size() - dims.size() + d;
      strides[to] = dims[d] == 1 ? 0 : view.strides[d];
    }
    view.strides = strides;
  } else if (!Reshaped(type.dims, view)) {
    view = Dense(view, n);
    view.strides = RowMajorStrides(type.dims);
  }
  view.type = type;
  views_[node.outputs[0]] = view;
  return absl::OkStatus();
}

bool Lowering::Reshaped(const Dims& to, View& view) {
  const Dims &from = view.type.dims, &strides = view.strides;
  Dims result(to.size(), 0);
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    // The smallest runs of both with as many elements.
    int64_t a = i < from.size() ? from[i] : 1, b = j < to.size() ? to[j] : 1;
    size_t i_end = std::min(i + 1, from.size());
    size_t j_end = std::min(j + 1, to.size());
    while (a != b) {
      if (a < b) {
        if (i_end == from.size()) return false;
        a *= from[i_end++];
      } else {
        if (j_end == to.size()) return false;
        b *= to[j_end++];
      }
    }
    if (a == 0) return false;
    int64_t inner = 0;  // the stride of the run's last element
    bool found = false;
    int64_t expected = 0;
    for (size_t d = i_end; d-- > i;) {
      if (from[d] == 1) continue;
      if (!found) {
        inner = strides[d];
        found = true;
      } else if (strides[d] != expected) {
        return false;
      }
      expected = strides[d] * from[d];
    }
    for (size_t d = j_end; d-- > j;) {
      result[d] = inner;
      inner *= to[d];
    }
    i = i_end;
    j = j_end;
  }
  view.strides = result;
  return true;
}

absl::Status Lowering::Concat(int n) {
  const Node& node = graph_.nodes[n];
  const int64_t axis = node.Int("axis");
  const View y = NewView(graph_.type(node.outputs[0]), Storage::Kind::kArena,
                         -1, MemoryOrder(ViewOf(node.inputs[0])));
  Step step;
  step.kernel = "generated";
  std::vector<ConcatPart> parts;
  int64_t begin = 0;
  for (const int input : node.inputs) {
    const View& x = ViewOf(input);
    ConcatPart part;
    part.expression.Load(static_cast<int>(step.operands.size()), x.type.type,
                         x.strides, x.offset);
    part.dims = x.type.dims;
    part.y_offset = begin * y.strides[axis];
    step.operands.push_back(x);
    if (Elements(part.dims) > 0) parts.push_back(std::move(part));
    begin += x.type.dims[axis];
  }
  step.code = target_.printer->Concat(parts, y.strides,
                                      static_cast<int>(step.operands.size()));
  step.operands.push_back(y);
  views_[node.outputs[0]] = y;
  Add(std::move(step), {n});
  return absl::OkStatus();
}

namespace {

// A part of y along one axis: where it begins, and how x is read there.
struct PaddedPart {
  int64_t begin = 0, size = 0, offset = 0, stride = 0;
};

// Those of y along an axis of x: padding before it, x, padding behind it.
std::vector<PaddedPart> PartsAlong(int64_t size, int64_t stride, int64_t before,
                                   int64_t after, bool reflects) {
  const int64_t last = size - 1;
  const std::vector<PaddedPart> all = {
      {0, before, reflects ? before * stride : 0, reflects ? -stride : 0},
      {before, size, 0, stride},
      {before + size, after, (reflects ? last - 1 : last) * stride,
       reflects ? -stride : 0}};
  std::vector<PaddedPart> parts;
  for (const PaddedPart& part : all) {
    if (part.size > 0) parts.push_back(part);
  }
  return parts;
}

}  // namespace

// Each combination of parts along the axes is copied by a loop of its own. With
// a constant around x, the parts before and behind an axis span the ones that
// are padded later.
absl::Status Lowering::Pad(int n) {
  const Node& node = graph_.nodes[n];
  const View x = ViewOf(node.inputs[0]);
  const TensorType& type = graph_.type(node.outputs[0]);
  const Dims before = node.Ints("before"), after = node.Ints("after");
  const std::string mode = node.Text("mode");
  const bool constant = mode == "constant", reflects = mode == "reflect";
  constexpr size_t kMostParts = 27;
  const size_t rank = type.dims.size();
  if (Elements(type.dims) == 0 || Elements(x.type.dims) == 0 || rank == 0 ||
      (!constant && !reflects && mode != "edge")) {
    return Reference(n);
  }
  size_t count = 1;
  for (size_t d = 0; d < rank && !constant; ++d) {
    if (reflects && std::max(before[d], after[d]) >= x.type.dims[d]) {
      return Reference(n);
    }
    count *= 1 + (before[d] > 0) + (after[d] > 0);
    if (count > kMostParts) return Reference(n);
  }
  Step step;
  step.kernel = "generated";
  const View y = NewView(type, Storage::Kind::kArena, -1, MemoryOrder(x));
  const int value =
      node.inputs.size() > 1 && node.inputs[1] >= 0 ? node.inputs[1] : -1;
  const bool reads_value = value >= 0 && !graph_.is_constant(value);
  if (reads_value) step.operands.push_back(ViewOf(value));
  std::vector<ConcatPart> parts;
  const auto fill = [&](const Dims& begin, const Dims& dims) {
    ConcatPart part;
    if (reads_value) {
      part.expression.Load(0, type.type, Dims(rank, 0), ViewOf(value).offset);
    } else {
      Array number = Array::Zeros({type.type, {}});
      if (value >= 0) {
        number =
            ConstantArray(graph_.type(value), *graph_.values[value].constant);
      }
      part.expression.Literal(number);
    }
    part.dims = dims;
    for (size_t d = 0; d < rank; ++d) part.y_offset += begin[d] * y.strides[d];
    parts.push_back(std::move(part));
  };
  if (constant) {
    Dims begin(rank, 0), dims = type.dims;
    for (size_t d = 0; d < rank; ++d) {
      for (const auto& [at, size] : {std::pair<int64_t, int64_t>{0, before[d]},
                                     {before[d] + x.type.dims[d], after[d]}}) {
        if (size == 0) continue;
        begin[d] = at;
        dims[d] = size;
        fill(begin, dims);
      }
      begin[d] = before[d];
      dims[d] = x.type.dims[d];
    }
  }
  std::vector<PaddedPart> chosen(rank);
  const std::function<void(size_t)> copy = [&](size_t d) {
    if (d < rank) {
      for (const PaddedPart& part :
           PartsAlong(x.type.dims[d], x.strides[d], constant ? 0 : before[d],
                      constant ? 0 : after[d], reflects)) {
        chosen[d] = part;
        if (constant) chosen[d].begin = before[d];
        copy(d + 1);
      }
      return;
    }
    ConcatPart part;
    View from = x;
    for (size_t i = 0; i < rank; ++i) {
      part.dims.push_back(chosen[i].size);
      from.strides[i] = chosen[i].stride;
      from.offset += chosen[i].offset;
      part.y_offset += chosen[i].begin * y.strides[i];
    }
    from.type.dims = part.dims;
    part.expression.Load(static_cast<int>(step.operands.size()), x.type.type,
                         from.strides, from.offset);
    step.operands.push_back(from);
    parts.push_back(std::move(part));
  };
  copy(0);
  step.code = target_.printer->Concat(parts, y.strides,
                                      static_cast<int>(step.operands.size()));
  step.operands.push_back(y);
  views_[node.outputs[0]] = y;
  Add(std::move(step), {n});
  return absl::OkStatus();
}

int Lowering::OperandOf(LoopBuilder& b, const View& view) {
  b.step.operands.push_back(view);
  return static_cast<int>(b.step.operands.size()) - 1;
}

Dims Lowering::StridesAlong(const View& view, const Dims& dims) {
  Dims strides(dims.size(), 0);
  const size_t skip = dims.size() - view.strides.size();
  for (size_t d = 0; d < view.strides.size(); ++d) {
    strides[skip + d] = view.type.dims[d] == 1 ? 0 : view.strides[d];
  }
  return strides;
}

int Lowering::Read(LoopBuilder& b, int value, const Dims& dims) {
  const auto known = b.known.find(value);
  if (known != b.known.end()) return known->second;
  const Value& v = graph_.values[value];
  int number;
  if (v.producer >= 0 && groups_.inlined[v.producer]) {
    number = Compute(b, v.producer, dims);
  } else if (v.constant != nullptr && !v.constant->absent() &&
             Elements(v.type.dims) == 1) {
    number = b.expression.Literal(ConstantArray(v.type, *v.constant));
  } else {
    const View view = ViewOf(value);
    if (!b.like && view.type.dims == dims) b.like = view;
    number = b.expression.Load(OperandOf(b, view), view.type.type,
                               StridesAlong(view, dims), view.offset);
  }
  b.known[value] = number;
  return number;
}

int Lowering::Compute(LoopBuilder& b, int n, const Dims& dims) {
  const Node& node = graph_.nodes[n];
  const proto::ElementType type = graph_.type(node.outputs[0]).type;
  b.nodes.push_back(n);
  if (node.op == "gather" || node.op == "gather_elements") {
    return Gathered(b, node, dims);
  }
  std::vector<int> inputs;
  for (const int input : node.inputs) inputs.push_back(Read(b, input, dims));
  return b.expression.Emit(node, inputs, type);
}

int Lowering::Gathered(LoopBuilder& b, const Node& node, const Dims& dims) {
  const View x = ViewOf(node.inputs[0]), at = ViewOf(node.inputs[1]);
  const size_t axis = node.Int("axis");
  Dims x_strides(dims.size(), 0), at_strides(dims.size(), 0);
  if (node.op == "gather_elements") {
    at_strides = at.strides;
    x_strides = x.strides;
    x_strides[axis] = 0;
  } else {
    const size_t more = at.strides.size();
    for (size_t d = 0; d < axis; ++d) x_strides[d] = x.strides[d];
    for (size_t d = 0; d < more; ++d) at_strides[axis + d] = at.strides[d];
    for (size_t d = axis + 1; d < x.strides.size(); ++d) {
      x_strides[d - 1 + more] = x.strides[d];
    }
  }
  const int index =
      b.expression.Load(OperandOf(b, at), at.type.type, at_strides);
  return b.expression.Gather(OperandOf(b, x), x.type.type, x_strides, index,
                             x.strides[axis], x.type.dims[axis]);
}

absl::Status Lowering::Loop(int n) {
  const Node& node = graph_.nodes[n];
  const TensorType& type = graph_.type(node.outputs[0]);
  const bool reduces = FindOp(node.op)->kind == OpKind::kReduction;
  const Dims dims = reduces ? graph_.type(node.inputs[0]).dims : type.dims;
  LoopBuilder b;
  if (reduces) {
    Read(b, node.inputs[0], dims);
    b.nodes.push_back(n);
    if (b.step.operands.empty()) return Reference(n);
  } else {
    Compute(b, n, dims);
  }
  std::vector<int> order;
  if (b.like && !reduces) order = MemoryOrder(*b.like);
  if (Elements(dims) == 0 || Elements(type.dims) == 0) return Reference(n);
  const int cast = reduces ? CastBehind(n) : -1;
  const View y =
      NewView(cast < 0 ? type : graph_.type(graph_.nodes[cast].outputs[0]),
              Storage::Kind::kArena, -1, order);
  const int result = OperandOf(b, y);
  if (reduces) {
    std::vector<bool> reduced(dims.size(), false);
    for (const int64_t axis : node.Ints("axes")) reduced[axis] = true;
    Dims strides(dims.size(), 0);
    size_t next = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (!reduced[d]) strides[d] = y.strides[next++];
      if (reduced[d] && node.Int("keepdims") != 0) ++next;
    }
    b.step.code = target_.printer->Reduce(node.op, b.expression, dims, reduced,
                                          strides, result, y.type.type);
  } else {
    b.step.code = target_.printer->Loop(b.expression, dims, y.strides, result);
    b.step.in_place = !b.expression.gathers();
  }
  b.step.kernel = "generated";
  views_[node.outputs[0]] = y;
  if (cast >= 0) {
    views_[graph_.nodes[cast].outputs[0]] = y;
    done_.insert(cast);
    b.nodes.push_back(cast);
  }
  Add(std::move(b.step), b.nodes);
  return absl::OkStatus();
}

int Lowering::CastBehind(int n) const {
  const int value = graph_.nodes[n].outputs[0];
  if (groups_.consumers[value] != 1 || consumers_[value].size() != 1 ||
      graph_.type(value).type != proto::ELEMENT_F32) {
    return -1;
  }
  const int reader = consumers_[value][0];
  const Node& node = graph_.nodes[reader];
  const bool rounds = node.op == "cast" && !groups_.inlined[reader] &&
                      graph_.type(node.outputs[0]).type == proto::ELEMENT_BF16;
  return rounds ? reader : -1;
}

}  // namespace optrail::graph
