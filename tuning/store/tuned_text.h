#ifndef OPTRAIL_TUNING_STORE_TUNED_TEXT_H_
#define OPTRAIL_TUNING_STORE_TUNED_TEXT_H_

// The text of a file of tuned configs: parsing, which checks it and completes
// what is implied, and printing, which leaves that out again.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const proto::TunedConfigs configs,
//                            ParseTunedConfigs(text, path));
//   const std::string canonical = FormatTunedConfigs(configs);
//
// store_files.h knows where the files lie.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tuning/proto/store.pb.h"

namespace optrail::tuning {

// Parses and checks one file: canonical shapes and configs. Of two entries of a
// key, as merging two branches leaves them, the one of the later session (or
// run) is returned, and `mended` gets a line about it.
// InvalidArgument with file, line, field, value and what was expected; also for
// two entries of a key that do not tell which is later.
absl::StatusOr<proto::TunedConfigs> ParseTunedConfigs(
    absl::string_view text, absl::string_view path,
    std::vector<std::string>* mended = nullptr);

// Sorted, one entry per block, with a header comment; ParseTunedConfigs reads
// it back.
std::string FormatTunedConfigs(proto::TunedConfigs configs);

// A file of a store, or of an operator's tuned folder, must be about what its
// path says: otherwise writing it back would go somewhere else.
absl::Status CheckPlace(const proto::TunedConfigs& configs,
                        absl::string_view op, absl::string_view path);

// The names of a file become parts of paths, so nothing else may be in them.
absl::Status CheckNames(absl::string_view operator_name,
                        absl::string_view hardware_id,
                        proto::DeviceKind device_kind);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_STORE_TUNED_TEXT_H_
