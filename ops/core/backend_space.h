#ifndef OPTRAIL_OPS_CORE_BACKEND_SPACE_H_
#define OPTRAIL_OPS_CORE_BACKEND_SPACE_H_

// The space of a backend, also of one that leaves nothing to choose, and its
// configs for one shape.
//
//   const EmbeddedFile& file = SpaceFileOf(backend);
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const BackendConfigs configs,
//       BindSpace(file.contents, file.path, shape, threads, hardware));

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/core/backend.h"
#include "tuning/session/config_source.h"
#include "tuning/space/space.h"

namespace optrail::ops {

// The backend's own; of one that has none, a space of one config.
const EmbeddedFile& SpaceFileOf(const Backend& backend);

// The configs that a backend has for one shape.
struct BackendConfigs {
  std::unique_ptr<tuning::Space> space;
  std::unique_ptr<tuning::BoundSpace> bound;
  // Configs that no space lists (Backend::Configs); may be null. Those of the
  // space (the default) are valid beside them.
  std::shared_ptr<const tuning::ConfigSource> configs;

  // OK for a config of either.
  absl::Status Validate(const proto::Config& config) const;
  // The config with the values of knobs that it lacks, where the space lists
  // it.
  proto::Config Complete(const proto::Config& config) const;
};

// Binds a space to a shape; leaves `configs` null. Errors are those of the
// space's text, with its path and line.
absl::StatusOr<BackendConfigs> BindSpace(tuning::Space space,
                                         const proto::Shape& shape, int threads,
                                         const proto::Hardware& hardware);
// Parses the space, too.
absl::StatusOr<BackendConfigs> BindSpace(const std::string& text,
                                         const std::string& path,
                                         const proto::Shape& shape, int threads,
                                         const proto::Hardware& hardware);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_BACKEND_SPACE_H_
