// Whatever the bytes are, the import answers and does not crash, and a graph
// that it makes is valid.
//
//   bazel build --config=fuzz //graph/onnx/evaluation:onnx_fuzzer
//   tar -C /tmp -xzf graph/onnx/evaluation/onnx_corpus.tar.gz
//   bazel-bin/graph/onnx/evaluation/onnx_fuzzer /tmp/onnx_corpus

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "graph/ir/graph_text.h"
#include "graph/onnx/import.h"
#include "graph/onnx/onnx_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto model = optrail::graph::ParseOnnxModel(bytes, "");
  if (!model.ok()) return 0;
  const auto imported = optrail::graph::ImportOnnxModel(*model);
  if (!imported.ok()) return 0;
  const absl::Status status = optrail::graph::Validate(imported->graph);
  OPTRAIL_CHECK(status.ok()) << status.message();
  OPTRAIL_CHECK(!optrail::graph::GraphText(imported->graph).empty());
  return 0;
}
