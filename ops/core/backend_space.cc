#include "ops/core/backend_space.h"

namespace optrail::ops {

const EmbeddedFile& SpaceFileOf(const Backend& backend) {
  static const auto& nothing_to_choose = *new EmbeddedFile{
      "(no space)",
      "knob { name: \"algorithm\" variants: [\"default\"] "
      "doc: \"the backend leaves nothing to choose\" }\n"
      "default { set { knob: \"algorithm\" variant: \"default\" } }\n"};
  return backend.space() != nullptr ? *backend.space() : nothing_to_choose;
}

}  // namespace optrail::ops
