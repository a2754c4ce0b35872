#ifndef OPTRAIL_GRAPH_ONNX_FILLED_MODEL_H_
#define OPTRAIL_GRAPH_ONNX_FILLED_MODEL_H_

// WriteFilledModel writes a model together with the values of constants that
// did not come with it, so that other programs compute with the same ones.
//
//   OPTRAIL_RETURN_IF_ERROR(
//       WriteFilledModel("bert_large.onnx", /*seed=*/1, "/tmp/filled"));
//
// The folder, which must exist, gets model.onnx and, where values were outside
// of the model or missing, weights.bin with all of these. A file larger than 2
// GiB is none that the format allows for model.onnx, but weights.bin may be.

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace optrail::graph {

// Errors name the file: those of ReadOnnxModel; Unimplemented for a constant of
// a type that no graph has.
absl::Status WriteFilledModel(const std::string& path, uint64_t seed,
                              const std::string& folder);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_ONNX_FILLED_MODEL_H_
