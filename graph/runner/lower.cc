#include <algorithm>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "graph/ir/ops.h"
#include "graph/runner/lowering.h"

namespace optrail::graph {

absl::StatusOr<Program> Lowering::Run() {
  for (const int input : graph_.inputs) {
    views_[input] = NewView(graph_.type(input), Storage::Kind::kInput, input);
    program_.inputs.push_back(views_[input]);
  }
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    if (groups_.inlined[n] || done_.count(static_cast<int>(n)) > 0) continue;
    const absl::Status status = LowerNode(static_cast<int>(n));
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("node \"", graph_.nodes[n].name,
                                       "\": ", status.message()));
    }
  }
  for (const int output : graph_.outputs) {
    program_.outputs.push_back(ViewOf(output));
  }
  program_.not_joined = groups_.reasons;
  return std::move(program_);
}

View Lowering::NewView(const TensorType& type, Storage::Kind kind, int value,
                       std::vector<int> order) {
  View view;
  view.storage = static_cast<int>(program_.storages.size());
  view.type = type;
  view.strides.resize(type.dims.size());
  if (order.empty()) {
    order.resize(type.dims.size());
    std::iota(order.begin(), order.end(), 0);
  }
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    view.strides[order[i]] = stride;
    stride *= std::max<int64_t>(type.dims[order[i]], 1);
  }
  program_.storages.push_back({kind, type.bytes(), value});
  return view;
}

const View& Lowering::ViewOf(int value) {
  View& view = views_[value];
  if (view.storage < 0) {
    OPTRAIL_CHECK(graph_.is_constant(value)) << graph_.values[value].name;
    view = NewView(graph_.type(value), Storage::Kind::kConstant, value);
  }
  return view;
}

bool Lowering::IsPrepared(const View& view) const {
  const Storage::Kind kind = program_.storages[view.storage].kind;
  return kind == Storage::Kind::kConstant || kind == Storage::Kind::kPrepared;
}

void Lowering::Add(Step step, std::vector<int> nodes) {
  step.prepared = true;
  const size_t reads = step.operands.size() - step.results;
  for (size_t i = 0; i < reads; ++i) {
    step.prepared = step.prepared && IsPrepared(step.operands[i]);
  }
  for (size_t i = reads; step.prepared && i < step.operands.size(); ++i) {
    program_.storages[step.operands[i].storage].kind = Storage::Kind::kPrepared;
  }
  if (step.name.empty()) step.name = graph_.nodes[nodes.back()].name;
  step.nodes = std::move(nodes);
  program_.steps.push_back(std::move(step));
}

View Lowering::Copied(const View& x, std::vector<int> order, int node,
                      const char* why) {
  const View y = NewView(x.type, Storage::Kind::kArena, -1, std::move(order));
  Expression expression;
  expression.Load(0, x.type.type, x.strides, x.offset);
  Step step;
  step.name = absl::StrCat(graph_.nodes[node].name, " ", why);
  step.kernel = "generated";
  step.operands = {x, y};
  step.code = target_.printer->Loop(expression, x.type.dims, y.strides, 1);
  Add(std::move(step), {node});
  return y;
}

bool Lowering::IsOperand(const View& x) const {
  return x.offset * ElementBytes(x.type.type) % target_.operand_bytes == 0;
}

View Lowering::Dense(const View& x, int node) {
  if (IsDense(x) && IsOperand(x)) return x;
  return Copied(x, {}, node, "(copy)");
}

bool Lowering::IsChannelsLast(const View& x) const {
  View moved = x;
  for (size_t i = 0; i < 4; ++i) {
    constexpr int kOrder[] = {0, 2, 3, 1};
    moved.type.dims[i] = x.type.dims[kOrder[i]];
    moved.strides[i] = x.strides[kOrder[i]];
  }
  return IsDense(moved);
}

View Lowering::ChannelsLast(const View& x, int node) {
  if (IsChannelsLast(x) && IsOperand(x)) return x;
  return Copied(x, {0, 2, 3, 1}, node, "(to channels last)");
}

absl::Status Lowering::LowerNode(int n) {
  const Node& node = graph_.nodes[n];
  const OpSpec& spec = *FindOp(node.op);
  for (const auto* const values : {&node.outputs, &node.inputs}) {
    for (const int value : *values) {
      if (value < 0 || HasCode(graph_.type(value).type)) continue;
      return Reference(n, absl::StrCat(ElementTypeName(graph_.type(value).type),
                                       " has no kernels"));
    }
  }
  if (spec.kind == OpKind::kElementwise) return Loop(n);
  if (IsView(node)) return Move(n);
  if (node.op == "concat") return Concat(n);
  if (node.op == "pad") return Pad(n);
  if (node.op == "gather" || node.op == "gather_elements") return Loop(n);
  if (spec.kind == OpKind::kReduction && node.op[0] == 'r') return Loop(n);
  if (node.op == "matmul" || node.op == "linear") return Product(n);
  if (node.op == "attention") return Attention(n);
  if (node.op == "conv" || node.op == "conv_bn_relu") return Conv(n);
  if (node.op == "max_pool" || node.op == "avg_pool") return Pool(n);
  if (node.op == "softmax") return Softmax(n);
  if (node.op == "layer_norm" || node.op == "rms_norm") return RowNorm(n);
  if (node.op == "add_layer_norm" || node.op == "add_rms_norm") {
    return NormOfSum(n);
  }
  return Reference(n);
}

absl::Status Lowering::Reference(int n, std::string why) {
  const Node& node = graph_.nodes[n];
  Step step;
  step.kernel = "reference";
  step.why = std::move(why);
  step.node = n;
  for (const int input : node.inputs) {
    if (input >= 0) step.operands.push_back(Dense(ViewOf(input), n));
  }
  for (const int output : node.outputs) {
    views_[output] = NewView(graph_.type(output), Storage::Kind::kArena);
    step.operands.push_back(views_[output]);
  }
  step.results = static_cast<int>(node.outputs.size());
  Add(std::move(step), {n});
  return absl::OkStatus();
}

bool IsDense(const View& view) {
  int64_t stride = 1;
  for (size_t d = view.strides.size(); d-- > 0;) {
    if (view.type.dims[d] != 1 && view.strides[d] != stride) return false;
    stride *= view.type.dims[d];
  }
  return true;
}

bool IsFloat(const View& view) {
  return view.type.type == proto::ELEMENT_F32 ||
         view.type.type == proto::ELEMENT_BF16;
}

std::vector<int> MemoryOrder(const View& view) {
  std::vector<int> order(view.strides.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return view.strides[a] > view.strides[b];
  });
  return order;
}

namespace {

// A compiler takes some 20 ms for each kernel. Models that repeat layers have
// some 60; only graphs without a pattern have more.
constexpr size_t kMostKernels = 300;

size_t Kernels(const Program& program) {
  std::set<absl::string_view> sources;
  for (const Step& step : program.steps) sources.insert(step.code.source);
  return sources.size();
}

}  // namespace

absl::StatusOr<Program> Lower(const Graph& graph,
                              const LoweringTarget& target) {
  OPTRAIL_ASSIGN_OR_RETURN(Program program,
                           Lowering(graph, kMostNodesInLoop, target).Run());
  if (Kernels(program) <= kMostKernels) return program;
  // A loop for each node has more traffic and far fewer texts.
  OPTRAIL_ASSIGN_OR_RETURN(Program single, Lowering(graph, 1, target).Run());
  return Kernels(single) < Kernels(program) ? single : program;
}

}  // namespace optrail::graph
