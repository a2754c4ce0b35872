// Whatever the bytes are, ParseRecording answers and does not crash.
//
//   bazel build --config=fuzz //tuning/replay/evaluation:recording_fuzzer
//   tar -C /tmp -xzf tuning/replay/evaluation/recording_corpus.tar.gz
//   bazel-bin/tuning/replay/evaluation/recording_fuzzer /tmp/recording_corpus

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "tuning/replay/recording.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto recording = optrail::tuning::ParseRecording(text, "fuzz");
  if (recording.ok()) {
    OPTRAIL_CHECK(!recording->configs.empty());
    for (const auto& config : recording->configs) {
      OPTRAIL_CHECK(config.levels.size() == recording->knobs.size());
    }
  }
  return 0;
}
