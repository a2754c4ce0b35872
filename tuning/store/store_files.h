#ifndef OPTRAIL_TUNING_STORE_STORE_FILES_H_
#define OPTRAIL_TUNING_STORE_STORE_FILES_H_

// Reading, writing and moving the files of tuned configs: what the tuner does
// when a session ends, and `optrail store show|diff|promote`.
//
//   RETURN_IF_ERROR(WriteOverlay(".optrail/store", "softmax", hardware,
//   tuned));
//
// Writes are atomic and merge: two tuners that finish at once both keep their
// winners. The text is sorted and the same for the same contents.

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tuning/proto/context.pb.h"
#include "tuning/proto/store.pb.h"

namespace optrail::tuning {

// Parses and checks one file: canonical shapes and configs, no entry twice.
// InvalidArgument with file, line, field, value and what was expected.
absl::StatusOr<proto::TunedConfigs> ParseTunedConfigs(absl::string_view text,
                                                      absl::string_view path);

// Sorted, one entry per block, with a header comment; ParseTunedConfigs reads
// it back.
std::string FormatTunedConfigs(proto::TunedConfigs configs);

// Reads every file of a directory, sorted by path. The overlay's layout is
// `<op>/<hardware_id>.textproto`, the tree's `<op>/tuned/<hardware_id>
// .textproto`. A missing directory holds nothing; any broken file is an error.
absl::StatusOr<std::vector<proto::TunedConfigs>> ReadOverlay(
    absl::string_view directory);
absl::StatusOr<std::vector<proto::TunedConfigs>> ReadTree(
    absl::string_view directory);

// Adds `tuned` to the overlay, replacing an entry of the same shape, threads
// and cache mode.
absl::Status WriteOverlay(absl::string_view overlay_directory,
                          absl::string_view operator_name,
                          absl::string_view hardware_id,
                          proto::DeviceKind device_kind,
                          const proto::TunedConfig& tuned);

// One entry where the overlay differs from the checked-in files.
struct StoreDifference {
  std::string operator_name;
  std::string hardware_id;
  proto::DeviceKind device_kind = proto::DEVICE_KIND_UNSPECIFIED;
  bool is_new = false;            // there is no checked-in entry
  proto::TunedConfig checked_in;  // unset if is_new
  proto::TunedConfig overlay;
};

// Sorted by operator, hardware, shape. Entries equal in both are left out.
absl::StatusOr<std::vector<StoreDifference>> DiffStore(
    absl::string_view checked_in_directory,
    absl::string_view overlay_directory);

// The two sides as lines that begin with "-" and "+".
std::string FormatDifference(const StoreDifference& difference);

// Moves the overlay's entries for which `filter` holds into the checked-in
// tree, then out of the overlay. Returns the files written. Interrupted in
// between, an entry is in both, and promoting again completes the move.
absl::StatusOr<std::vector<std::string>> PromoteOverlay(
    absl::string_view checked_in_directory, absl::string_view overlay_directory,
    absl::FunctionRef<bool(const StoreDifference&)> filter);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_STORE_STORE_FILES_H_
