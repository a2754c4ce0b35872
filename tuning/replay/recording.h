#ifndef OPTRAIL_TUNING_REPLAY_RECORDING_H_
#define OPTRAIL_TUNING_REPLAY_RECORDING_H_

// Recording is an exhaustively measured tuning space of another project: every
// valid config of a kernel on one device with its repeats. Two formats are
// read, plain or compressed: Kernel Tuner's cache files and T4 (auto-tuning
// results) JSON. The format is told from the content, not from the name. A
// cache may also be stored by columns, which takes a quarter less once it is
// compressed: "columns" in place of "cache", {"tile_m": [32, 64], "time": ...},
// with null where a config lacks a member. There, "times" may be "least" and,
// for repeat N, "above_N", how far it is above the least in units of the
// least's fifth significant digit; "time" is then their mean, of five digits,
// unless it is given.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const Recording recording,
//                            ReadRecording("convolution_A100.json.xz"));
//
// A reading that is not a positive, finite number is a failed config, as is one
// that says so. What is not JSON, ends early or lacks a required member is an
// error that names the file, the place and what was expected; NaN and Infinity,
// which JSON has not but Python writes, read as null.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tuning/search/strategy.h"
#include "tuning/space/domain.h"

namespace optrail::tuning {

struct RecordedConfig {
  Levels levels;
  proto::Outcome outcome = proto::OK;
  // Mean time; only for OK configs.
  double time_ms = 0;
  std::vector<double> repeats_ms;
  // Time to compile; 0 if it was not recorded.
  double compile_ms = 0;
  // The joules of a call ("nvml_energy" in Kernel Tuner's caches); 0 if they
  // were not recorded.
  double joules = 0;
  // Facts of the compiled code ("facts"): names and values.
  std::vector<std::pair<std::string, int64_t>> facts;
};

struct Recording {
  std::string name;  // the file's name without folder, suffixes and "_T4"
  std::vector<KnobLevels> knobs;
  std::vector<RecordedConfig> configs;  // in lexicographic order of levels
};

// Reads a file of either format. Integer knobs become ordinal; all others
// categorical. A value no config has is no level.
absl::StatusOr<Recording> ReadRecording(const std::string& path);

// The same of a text, gzipped or not. `name` appears in the messages.
absl::StatusOr<Recording> ParseRecording(absl::string_view text,
                                         absl::string_view name);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_REPLAY_RECORDING_H_
