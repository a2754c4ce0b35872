#include "ops/product/amx/backend.h"

#include "base/status_macros.h"

namespace optrail::ops {

absl::StatusOr<AmxKnobs> AmxKnobsFrom(const proto::Config& config) {
  KnobReader reader(config);
  AmxKnobs knobs;
  knobs.n_panels = reader.Int("n_panels");
  knobs.kc = reader.Int("kc");
  knobs.pack_a = reader.Bool("pack_a");
  knobs.prefetch_a = reader.Bool("prefetch_a");
  knobs.round_between = reader.Bool("round_between");
  knobs.stream_b = reader.Bool("stream_b");
  knobs.task_rows = reader.Int("task_rows");
  knobs.task_columns = reader.Int("task_columns");
  OPTRAIL_RETURN_IF_ERROR(reader.status());
  return knobs;
}

std::vector<std::pair<std::string, int64_t>> AmxProductBackend::Blocks(
    const proto::Config& config) const {
  const absl::StatusOr<AmxKnobs> knobs = AmxKnobsFrom(config);
  if (!knobs.ok()) return {};
  return {
      {"m", kTileRows},           {"m", kPanel},     {"m", knobs->task_rows},
      {"n", kTileColumns},        {"n", kPanel},     {"n", knobs->nc()},
      {"n", knobs->task_columns}, {"k", kTileSteps}, {"k", knobs->kc}};
}

}  // namespace optrail::ops
