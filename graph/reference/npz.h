#ifndef OPTRAIL_GRAPH_REFERENCE_NPZ_H_
#define OPTRAIL_GRAPH_REFERENCE_NPZ_H_

// Arrays that NumPy saved, by numpy.savez("tiny.npz", x=x, output=y): inputs of
// a model, and what another framework made of them.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const NamedArrays arrays,
//                            ReadNpz("tiny.npz"));
//   Use(arrays.at("output").reals[0]);
//
// Dense little-endian numbers and booleans in C order; files of savez and of
// savez_compressed. The formats are ZIP's, and NumPy's format versions 1 to 3.

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/array.h"

namespace optrail::graph {

using NamedArrays = std::map<std::string, Array>;

// InvalidArgument names the file, the array and what is wrong.
absl::StatusOr<NamedArrays> ReadNpz(const std::string& path);
absl::StatusOr<NamedArrays> ParseNpz(absl::string_view contents);

// One array, the contents of a .npy file.
absl::StatusOr<Array> ParseNpy(absl::string_view contents);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_REFERENCE_NPZ_H_
