#include <numeric>

#include "graph/onnx/node_import.h"

namespace optrail::graph {
namespace {

using Results = std::vector<int>;

// What is reduced: the operand, its axes and whether they stay as 1.
struct Reduction {
  int x = -1;
  Dims axes;
  bool keepdims = true;
  bool nothing = false;
};

Reduction ReductionOf(NodeImport& node) {
  Reduction r;
  r.x = node.In(0);
  r.keepdims = node.Int("keepdims", 1) != 0;
  const Dims given =
      node.Has(1) ? node.KnownInts(1, "the axes") : node.Ints("axes");
  r.axes = node.Axes(given, node.rank(r.x));
  if (given.empty()) {
    r.nothing = node.Int("noop_with_empty_axes", 0) != 0;
    if (!r.nothing) {
      r.axes.resize(node.rank(r.x));
      std::iota(r.axes.begin(), r.axes.end(), 0);
    }
  }
  return r;
}

int Reduced(NodeImport& node, const Reduction& r, const char* op, int x) {
  return r.nothing ? x : node.Reduce(op, x, r.axes, r.keepdims);
}

Results SumSquare(NodeImport& node) {
  const Reduction r = ReductionOf(node);
  return {Reduced(node, r, "reduce_sum", node.Emit("mul", {r.x, r.x}))};
}

// The root of an integer is rounded towards zero.
Results L2(NodeImport& node) {
  const Reduction r = ReductionOf(node);
  const proto::ElementType type = node.type(r.x).type;
  const int real = IsReal(type) ? r.x : node.Cast(r.x, proto::ELEMENT_F64);
  const int sum =
      Reduced(node, r, "reduce_sum", node.Emit("mul", {real, real}));
  return {node.Cast(node.Emit("sqrt", {sum}), type)};
}

Results L1(NodeImport& node) {
  const Reduction r = ReductionOf(node);
  return {Reduced(node, r, "reduce_sum", node.Emit("abs", {r.x}))};
}

Results LogSum(NodeImport& node) {
  const Reduction r = ReductionOf(node);
  return {node.Emit("log", {Reduced(node, r, "reduce_sum", r.x)})};
}

// Without the maximum, exponentials overflow.
Results LogSumExp(NodeImport& node) {
  Reduction r = ReductionOf(node);
  if (r.nothing) return {r.x};
  const int most = node.Reduce("reduce_max", r.x, r.axes, true);
  const int sum = node.Reduce("reduce_sum",
                              node.Emit("exp", {node.Emit("sub", {r.x, most})}),
                              r.axes, true);
  const int result = node.Emit("add", {node.Emit("log", {sum}), most});
  if (r.keepdims || !node.ok()) return {result};
  Dims to;
  for (int64_t d = 0; d < node.rank(r.x); ++d) {
    bool kept = true;
    for (const int64_t axis : r.axes) kept = kept && axis != d;
    if (kept) to.push_back(node.dims(r.x)[d]);
  }
  return {node.Reshape(result, to)};
}

Results Mean(NodeImport& node) {
  const Reduction r = ReductionOf(node);
  return {Reduced(node, r, "reduce_mean", r.x)};
}

Results Arg(NodeImport& node, const char* op) {
  const int x = node.In(0);
  const int64_t axis = node.Axis(node.Int("axis", 0), node.rank(x));
  return {node.Emit(op, {x},
                    {{"axis", axis},
                     {"keepdims", node.Int("keepdims", 1)},
                     {"last", node.Int("select_last_index", 0)}})};
}

}  // namespace

void AddReduceRules(ImportRules& rules) {
  rules.insert({{"ReduceL1", L1},
                {"ReduceL2", L2},
                {"ReduceLogSum", LogSum},
                {"ReduceLogSumExp", LogSumExp},
                {"ReduceMean", Mean},
                {"ReduceSumSquare", SumSquare}});
  for (const auto& [onnx, op] :
       {std::pair<const char*, const char*>{"ReduceMax", "reduce_max"},
        {"ReduceMin", "reduce_min"},
        {"ReduceProd", "reduce_prod"},
        {"ReduceSum", "reduce_sum"}}) {
    rules[onnx] = [op = op](NodeImport& node) -> Results {
      const Reduction r = ReductionOf(node);
      return {Reduced(node, r, op, r.x)};
    };
  }
  rules["ArgMax"] = [](NodeImport& node) { return Arg(node, "arg_max"); };
  rules["ArgMin"] = [](NodeImport& node) { return Arg(node, "arg_min"); };
}

}  // namespace optrail::graph
