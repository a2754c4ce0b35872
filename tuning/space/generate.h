#ifndef OPTRAIL_TUNING_SPACE_GENERATE_H_
#define OPTRAIL_TUNING_SPACE_GENERATE_H_

// Writes the C++ header that a CPU kernel compiles its templates with: a struct
// with one typed field per knob, and the instantiations of the compile_time
// knobs as an X-macro. For softmax.space.textproto:
//
//   struct SoftmaxKnobs {
//     enum class Algorithm { kTwoPass, kOnline };
//     int64_t rows_per_task;
//     int64_t unroll;
//     Algorithm algorithm;
//     static absl::StatusOr<SoftmaxKnobs> From(const proto::Config& config);
//     int InstantiationIndex() const;  // -1: not instantiated
//   };
//   // OPTRAIL_SOFTMAX_INSTANTIATIONS(X) is
//   //   X(0, 1, SoftmaxKnobs::Algorithm::kTwoPass)
//   //   X(1, 1, SoftmaxKnobs::Algorithm::kOnline) ...
//
// The rest of the header is described in docs/reference/space_format.md.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tuning/proto/config.pb.h"
#include "tuning/space/space.h"

namespace optrail::tuning {

// The values of the compile_time knobs, in declared order, of each
// instantiation: every combination that the constraints which read only
// compile_time knobs allow. One empty instantiation if there is no such knob.
// InvalidArgument if there are more than the space's max_instantiations (names
// the knobs and their counts), none, or if a compile_time knob's levels depend
// on the shape.
absl::StatusOr<std::vector<proto::Config>> Instantiations(const Space& space);

struct GenerateOptions {
  std::string name;  // "softmax"
  std::string cpp_namespace = "optrail::ops";
  std::string header_path;  // for the header guard
  int shards = 1;           // files to spread them over
};

absl::StatusOr<std::string> GenerateKnobsHeader(const Space& space,
                                                const GenerateOptions& options);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SPACE_GENERATE_H_
