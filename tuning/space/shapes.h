#ifndef OPTRAIL_TUNING_SPACE_SHAPES_H_
#define OPTRAIL_TUNING_SPACE_SHAPES_H_

// Reads a shapes file (shapes.proto):
//
//   shape { dims: "rows=6144,cols=384" dtype: F32 name: "bert_large_attention"
//           doc: "heads x tokens" tags: "smoke" }

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tuning/proto/config.pb.h"

namespace optrail::tuning {

struct NamedShape {
  proto::Shape shape;
  std::string name;  // the canonical text if the file gives none
  std::string doc;
  std::vector<std::string> tags;
  int line = 0;  // in the file, from 1
};

// In the file's order. InvalidArgument with FILE:LINE:COLUMN for dimensions
// that can't be read, an unknown or missing type, a shape or a name given
// twice, dimensions that differ from the first shape's in name or order.
absl::StatusOr<std::vector<NamedShape>> ParseShapes(absl::string_view text,
                                                    absl::string_view filename);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SPACE_SHAPES_H_
