// Whatever the bytes are, the import answers and does not crash, and a graph
// that it makes is valid. A model that is imported whole computes the same when
// parts of it have become functions of its own, which stand where they are
// called again after the import (inline_functions.h).
//
//   bazel build --config=fuzz //graph/onnx/evaluation:onnx_fuzzer
//   tar -C /tmp -xzf graph/onnx/evaluation/onnx_corpus.tar.gz
//   bazel-bin/graph/onnx/evaluation/onnx_fuzzer /tmp/onnx_corpus

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/check.h"
#include "base/random.h"
#include "graph/ir/graph_text.h"
#include "graph/onnx/import.h"
#include "graph/onnx/onnx_model.h"
#include "graph/onnx/testing/outline.h"
#include "graph/reference/reference.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace optrail::graph {
namespace {

// Larger graphs take the reference too long.
constexpr int64_t kMostComputed = 1 << 14;
constexpr size_t kMostNodes = 300;

bool IsSmall(const Graph& graph) {
  int64_t elements = 0;
  for (const Value& value : graph.values) {
    const int64_t here = Elements(value.type.dims);
    if (here > kMostComputed) return false;
    elements += here;
  }
  return elements <= 16 * kMostComputed && graph.nodes.size() <= kMostNodes;
}

bool IsWhole(const absl::StatusOr<Imported>& imported) {
  return imported.ok() && imported->uncovered.empty();
}

absl::StatusOr<Imported> Import(const std::string& bytes) {
  const auto model = ParseOnnxModel(bytes, "");
  if (!model.ok()) return model.status();
  return ImportOnnxModel(*model);
}

// `whole` is `bytes`, imported.
void CheckOutlined(const Imported& whole, const std::string& bytes) {
  onnx::ModelProto model;
  OPTRAIL_CHECK(model.ParseFromString(bytes));
  uint64_t seed = 14695981039346656037u;
  for (const char c : bytes)
    seed = (seed ^ static_cast<uint8_t>(c)) * 1099511628211u;
  Rng rng(seed);
  bool changed = false;
  for (int i = 0; i < 4; ++i) changed = Outline(model, rng) || changed;
  if (!changed) return;
  const std::string outlined = model.SerializeAsString();
  const auto imported = Import(outlined);
  if (!imported.ok() &&
      absl::StrContains(imported.status().message(),
                        "calls of functions are more than ")) {
    return;  // one call deeper is too deep
  }
  OPTRAIL_CHECK(imported.ok()) << imported.status().message();
  OPTRAIL_CHECK(imported->uncovered.empty()) << imported->uncovered[0].reason;
  if (!IsSmall(whole.graph) || !IsSmall(imported->graph)) return;
  const std::vector<Array> inputs = SeededInputs(whole.graph, 1);
  const auto expected = RunReference(whole.graph, inputs);
  const auto outputs = RunReference(imported->graph, inputs);
  OPTRAIL_CHECK(expected.ok() == outputs.ok());
  if (!expected.ok()) return;
  OPTRAIL_CHECK(outputs->size() == expected->size());
  for (size_t i = 0; i < outputs->size(); ++i) {
    const Difference difference = Compare((*outputs)[i], (*expected)[i]);
    OPTRAIL_CHECK(difference.problem.empty() && difference.relative == 0)
        << "output " << i << ": " << difference.problem << " "
        << difference.relative;
  }
}

}  // namespace
}  // namespace optrail::graph

// Half of the time functions and calls change, else any bytes.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t most, unsigned int seed) {
  optrail::Rng rng(seed);
  onnx::ModelProto model;
  if (rng.UniformInt(2) == 0 ||
      !model.ParseFromArray(data, static_cast<int>(size))) {
    return LLVMFuzzerMutate(data, size, most);
  }
  if (rng.UniformInt(2) == 0) {
    optrail::graph::Outline(model, rng);
  } else {
    optrail::graph::Disturb(model, rng);
  }
  const std::string bytes = model.SerializeAsString();
  if (bytes.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto imported = optrail::graph::Import(bytes);
  if (!imported.ok()) return 0;
  const absl::Status status = optrail::graph::Validate(imported->graph);
  OPTRAIL_CHECK(status.ok()) << status.message();
  OPTRAIL_CHECK(!optrail::graph::GraphText(imported->graph).empty());
  if (optrail::graph::IsWhole(imported)) {
    optrail::graph::CheckOutlined(*imported, bytes);
  }
  return 0;
}
