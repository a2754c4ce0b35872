#ifndef OPTRAIL_OPS_CORE_BACKEND_SPACE_H_
#define OPTRAIL_OPS_CORE_BACKEND_SPACE_H_

// The space of a backend, also of one that leaves nothing to choose.
//
//   const EmbeddedFile& file = SpaceFileOf(backend);
//   OPTRAIL_ASSIGN_OR_RETURN(const tuning::Space space,
//                            tuning::Space::Parse(file.contents, file.path));

#include "ops/core/backend.h"

namespace optrail::ops {

// The backend's own; of one that has none, a space of one config.
const EmbeddedFile& SpaceFileOf(const Backend& backend);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_BACKEND_SPACE_H_
