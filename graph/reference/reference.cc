#include "graph/reference/reference.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/process/machine_memory.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "graph/ir/ops.h"

namespace optrail::graph {
namespace {

// The position of the last node that reads each value; outputs are kept.
std::vector<int> LastReaders(const Graph& graph) {
  std::vector<int> last(graph.values.size(), -1);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const int input : graph.nodes[n].inputs) {
      if (input >= 0) last[input] = static_cast<int>(n);
    }
  }
  for (const int output : graph.outputs) {
    last[output] = static_cast<int>(graph.nodes.size());
  }
  return last;
}

// That what is alive at once, 8 bytes an element, fits into the machine.
absl::Status FitsMemory(const Graph& graph, const std::vector<int>& last) {
  const double most = static_cast<double>(MachineMemoryBytes()) / 8 * 7;
  const auto bytes = [&](int value) {
    return 8 * static_cast<double>(Elements(graph.type(value).dims));
  };
  double live = 0;
  for (const int input : graph.inputs) live += bytes(input);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (const int output : node.outputs) live += bytes(output);
    double constants = 0;
    for (const int input : node.inputs) {
      if (input >= 0 && graph.is_constant(input)) constants += bytes(input);
    }
    if (live + constants > most) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "node \"", node.name, "\" (", node.op, "): the reference would hold ",
          live + constants, " bytes; the machine has ", MachineMemoryBytes()));
    }
    for (const int output : node.outputs) {
      if (last[output] < static_cast<int>(n)) live -= bytes(output);
    }
    const std::set<int> inputs(node.inputs.begin(), node.inputs.end());
    for (const int input : inputs) {
      if (input >= 0 && !graph.is_constant(input) &&
          last[input] == static_cast<int>(n)) {
        live -= bytes(input);
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Array>> RunNode(
    const Graph& graph, const Node& node,
    const std::vector<std::optional<Array>>& values) {
  // Constants are decoded for one node, since all of them may not fit.
  std::vector<Array> constants;
  constants.reserve(node.inputs.size());
  ArrayList inputs;
  for (const int input : node.inputs) {
    if (input < 0) {
      inputs.push_back(nullptr);
    } else if (graph.is_constant(input)) {
      constants.push_back(
          ConstantArray(graph.type(input), *graph.values[input].constant));
      inputs.push_back(&constants.back());
    } else {
      inputs.push_back(&*values[input]);
    }
  }
  std::vector<TensorType> types;
  for (const int output : node.outputs) types.push_back(graph.type(output));
  absl::StatusOr<std::vector<Array>> results =
      FindOp(node.op)->evaluate(node, inputs, types);
  if (results.ok()) return results;
  return absl::Status(results.status().code(),
                      absl::StrCat("node \"", node.name, "\" (", node.op,
                                   "): ", results.status().message()));
}

bool IsIndexOp(const std::string& op) {
  return op == "gather" || op == "gather_elements" || op == "gather_nd" ||
         op == "scatter_elements" || op == "scatter_nd";
}

constexpr int64_t kNone = int64_t{1} << 62;

// The size of what each value indexes, kNone for those that index nothing. It
// flows backwards through nodes that `passes` holds for. Without an axis each
// index is of one of several dimensions: the smallest, or the largest one.
std::vector<int64_t> FlowBack(const Graph& graph,
                              const std::function<bool(const Node&)>& passes,
                              bool smallest) {
  std::vector<int64_t> limit(graph.values.size(), kNone);
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    if (IsIndexOp(node.op)) {
      const Dims& data = graph.type(node.inputs[0]).dims;
      int64_t size = kNone;
      if (node.attributes.count("axis") != 0) {
        size = data[node.Int("axis")];
      } else if (!data.empty()) {
        size = smallest ? *std::min_element(data.begin(), data.end())
                        : *std::max_element(data.begin(), data.end());
      }
      limit[node.inputs[1]] = std::min(limit[node.inputs[1]], size);
    }
    if (!passes(node)) continue;
    for (const int output : node.outputs) {
      limit[node.inputs[0]] = std::min(limit[node.inputs[0]], limit[output]);
    }
  }
  return limit;
}

// The largest of the limits of slices that together are all of `input`; kNone
// where something else reads it, or a part of it is nobody's index.
int64_t LimitOfSlices(const Graph& graph, int input,
                      const std::vector<int64_t>& limit) {
  const Dims& dims = graph.type(input).dims;
  std::vector<bool> is_read(Elements(dims), false);
  const Dims strides = RowMajorStrides(dims);
  int64_t largest = 0;
  for (const Node& node : graph.nodes) {
    if (std::find(node.inputs.begin(), node.inputs.end(), input) ==
        node.inputs.end()) {
      continue;
    }
    if (node.op != "slice" || limit[node.outputs[0]] == kNone) return kNone;
    largest = std::max(largest, limit[node.outputs[0]]);
    const Dims& starts = node.Ints("starts");
    const Dims& steps = node.Ints("steps");
    int64_t base = 0;
    Dims moves = strides;
    for (size_t d = 0; d < dims.size(); ++d) {
      base += starts[d] * strides[d];
      moves[d] *= steps[d];
    }
    ForEachElement(graph.type(node.outputs[0]).dims, {moves},
                   [&](int64_t, const std::vector<int64_t>& at) {
                     is_read[base + at[0]] = true;
                   });
  }
  const bool all =
      std::find(is_read.begin(), is_read.end(), false) == is_read.end();
  return all && largest > 0 ? largest : kNone;
}

}  // namespace

absl::StatusOr<std::vector<Array>> RunReference(
    const Graph& graph, const std::vector<Array>& inputs,
    const std::function<void(int value, const Array&)>& observe) {
  if (inputs.size() != graph.inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        inputs.size(), " inputs; the graph has ", graph.inputs.size()));
  }
  std::vector<std::optional<Array>> values(graph.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = graph.values[graph.inputs[i]];
    if (!(inputs[i].type == value.type)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input \"", value.name, "\" is ", TypeText(inputs[i].type),
          "; expected ", TypeText(value.type)));
    }
    values[graph.inputs[i]] = inputs[i];
  }
  const std::vector<int> last = LastReaders(graph);
  OPTRAIL_RETURN_IF_ERROR(FitsMemory(graph, last));
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    OPTRAIL_ASSIGN_OR_RETURN(std::vector<Array> results,
                             RunNode(graph, node, values));
    for (size_t i = 0; i < results.size(); ++i) {
      const int output = node.outputs[i];
      if (observe) observe(output, results[i]);
      if (last[output] >= 0) values[output] = std::move(results[i]);
    }
    for (const int input : node.inputs) {
      if (input >= 0 && last[input] == static_cast<int>(n)) {
        values[input].reset();
      }
    }
  }
  std::vector<Array> outputs;
  for (const int output : graph.outputs) {
    outputs.push_back(
        graph.is_constant(output)
            ? ConstantArray(graph.type(output), *graph.values[output].constant)
            : *values[output]);
  }
  return outputs;
}

Array RandomInput(const TensorType& type, uint64_t seed, int64_t index_limit) {
  Array array = Array::Zeros(type);
  Rng rng(seed);
  for (double& value : array.reals) value = rng.Gaussian();
  const int64_t limit =
      type.type == proto::ELEMENT_BOOL ? 2 : std::max<int64_t>(index_limit, 1);
  for (int64_t& value : array.integers) {
    value = Wrap(type.type, rng.UniformInt(limit));
  }
  // What a narrower type holds is what kernels and references begin with.
  return *Array::Decode(type, array.Encode());
}

std::vector<int64_t> IndexLimits(const Graph& graph) {
  const auto passes = [](const Node& node) {
    const OpSpec* const op = FindOp(node.op);
    return op != nullptr && (op->kind == OpKind::kMovement ||
                             node.op == "cast" || node.op == "gather");
  };
  const std::vector<int64_t> limit = FlowBack(graph, passes, /*smallest=*/true);
  std::vector<int64_t> result;
  for (const int input : graph.inputs) {
    result.push_back(limit[input] == kNone ? 2 : limit[input]);
  }
  return result;
}

std::vector<int64_t> IndexBounds(const Graph& graph) {
  // A node that may drop or wrap an element tells nothing of all elements.
  const auto passes = [&](const Node& node) {
    if (node.op == "cast") {
      const proto::ElementType to = graph.type(node.outputs[0]).type;
      return to == proto::ELEMENT_I32 || to == proto::ELEMENT_I64;
    }
    return node.op == "reshape" || node.op == "transpose" ||
           node.op == "expand";
  };
  const std::vector<int64_t> limit =
      FlowBack(graph, passes, /*smallest=*/false);
  std::vector<int64_t> result;
  for (const int input : graph.inputs) {
    const int64_t bound = limit[input] != kNone
                              ? limit[input]
                              : LimitOfSlices(graph, input, limit);
    result.push_back(bound == kNone ? 0 : bound);
  }
  return result;
}

absl::Status CheckIndices(const Array& array, int64_t bound) {
  if (bound <= 0) return absl::OkStatus();
  for (size_t e = 0; e < array.integers.size(); ++e) {
    const int64_t index = array.integers[e];
    if (-bound <= index && index < bound) continue;
    return absl::OutOfRangeError(absl::StrCat("value ", e, " is ", index,
                                              "; expected an index from ",
                                              -bound, " to ", bound - 1));
  }
  return absl::OkStatus();
}

std::vector<Array> SeededInputs(const Graph& graph, uint64_t seed) {
  const std::vector<int64_t> limits = IndexLimits(graph);
  std::vector<Array> inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    inputs.push_back(
        RandomInput(graph.type(graph.inputs[i]), seed + i, limits[i]));
  }
  return inputs;
}

Difference Compare(const Array& ours, const Array& expected) {
  Difference difference;
  if (!(ours.type == expected.type)) {
    difference.problem = absl::StrCat("is ", TypeText(ours.type), "; expected ",
                                      TypeText(expected.type));
    return difference;
  }
  double largest = 0;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    if (std::isfinite(expected.At(i))) {
      largest = std::max(largest, std::fabs(expected.At(i)));
    }
  }
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double a = ours.At(i), b = expected.At(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!std::isfinite(a) || !std::isfinite(b)) {
      difference.problem =
          absl::StrCat("element ", i, " is ", a, "; expected ", b);
      difference.worst = i;
      return difference;
    }
    const double relative = std::fabs(a - b) / (largest > 0 ? largest : 1);
    if (relative > difference.relative) {
      difference.relative = relative;
      difference.worst = i;
    }
  }
  return difference;
}

}  // namespace optrail::graph
