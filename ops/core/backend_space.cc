#include "ops/core/backend_space.h"

#include <utility>

#include "base/status_macros.h"

namespace optrail::ops {

const EmbeddedFile& SpaceFileOf(const Backend& backend) {
  static const auto& nothing_to_choose = *new EmbeddedFile{
      "(no space)",
      "knob { name: \"algorithm\" variants: [\"default\"] "
      "doc: \"the backend leaves nothing to choose\" }\n"
      "default { set { knob: \"algorithm\" variant: \"default\" } }\n"};
  return backend.space() != nullptr ? *backend.space() : nothing_to_choose;
}

absl::Status BackendConfigs::Validate(const proto::Config& config) const {
  const absl::Status listed = bound->Validate(config);
  return listed.ok() || configs == nullptr ? listed : configs->Validate(config);
}

proto::Config BackendConfigs::Complete(const proto::Config& config) const {
  auto complete = bound->Complete(config);
  return complete.ok() ? *std::move(complete) : config;
}

absl::StatusOr<BackendConfigs> BindSpace(tuning::Space space,
                                         const proto::Shape& shape, int threads,
                                         const proto::Hardware& hardware) {
  BackendConfigs result;
  result.space = std::make_unique<tuning::Space>(std::move(space));
  tuning::BindOptions options;
  options.threads = threads;
  OPTRAIL_ASSIGN_OR_RETURN(result.bound,
                           result.space->Bind(shape, hardware, options));
  return result;
}

absl::StatusOr<BackendConfigs> BindSpace(const std::string& text,
                                         const std::string& path,
                                         const proto::Shape& shape, int threads,
                                         const proto::Hardware& hardware) {
  OPTRAIL_ASSIGN_OR_RETURN(tuning::Space space,
                           tuning::Space::Parse(text, path));
  return BindSpace(std::move(space), shape, threads, hardware);
}

}  // namespace optrail::ops
