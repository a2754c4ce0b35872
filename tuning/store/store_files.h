#ifndef OPTRAIL_TUNING_STORE_STORE_FILES_H_
#define OPTRAIL_TUNING_STORE_STORE_FILES_H_

// Reading, writing and moving the files of tuned configs: what the tuner does
// when a session ends, and `optrail store show|diff|promote`.
//
//   RETURN_IF_ERROR(WriteOverlay(".optrail/store", "softmax",
//                                "amd-epyc-zen4-2c", proto::CPU, tuned));
//
// Writes are atomic and merge: two tuners that finish at once both keep their
// winners. The text is sorted and the same for the same contents.

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tuning/proto/context.pb.h"
#include "tuning/proto/store.pb.h"
#include "tuning/store/operator_folders.h"

namespace optrail::tuning {

// Reads every file, sorted by path: of the overlay `<op>/<hardware_id>
// .textproto`, of the folder of each operator `tuned/<hardware_id>.textproto`.
// A missing directory holds nothing; any broken file is an error.
absl::StatusOr<std::vector<proto::TunedConfigs>> ReadOverlay(
    absl::string_view directory);
absl::StatusOr<std::vector<proto::TunedConfigs>> ReadTree(
    const OperatorFolders& folders);

// The entries of `tree` that `built_in` lacks or has in another form: what a
// program, whose checked-in layer is `built_in`, has only once it is built
// again.
std::vector<proto::TunedConfigs> EntriesMissingFrom(
    const std::vector<proto::TunedConfigs>& built_in,
    const std::vector<proto::TunedConfigs>& tree);

// Rewrites the files, checked in and of the overlay, whose text is not what
// FormatTunedConfigs prints: of two entries of a key the earlier one goes, and
// entries of earlier versions get their short form. Returns a line for each
// removed entry and for each file that only became shorter. A promotion at the
// same time waits.
absl::StatusOr<std::vector<std::string>> MendStore(
    const OperatorFolders& folders, absl::string_view overlay_directory);

// Adds an entry to the overlay, replacing one of the same key: shape, threads
// and cache mode; backend, launch mode, objective and devices.
absl::Status WriteOverlay(absl::string_view overlay_directory,
                          absl::string_view operator_name,
                          absl::string_view hardware_id,
                          proto::DeviceKind device_kind,
                          const proto::TunedConfig& tuned);
absl::Status WriteOverlay(absl::string_view overlay_directory,
                          absl::string_view operator_name,
                          absl::string_view hardware_id,
                          proto::DeviceKind device_kind,
                          const proto::BestBackend& best);

// The error that WriteOverlay would meet in what lies there, for who is about
// to spend time on an entry.
absl::Status CheckOverlayFile(absl::string_view overlay_directory,
                              absl::string_view operator_name,
                              absl::string_view hardware_id,
                              proto::DeviceKind device_kind);

// One entry where the overlay differs from the checked-in files.
struct StoreDifference {
  std::string operator_name;
  std::string hardware_id;
  proto::DeviceKind device_kind = proto::DEVICE_KIND_UNSPECIFIED;
  // Of the checked-in file, there or not; empty if the operator has no folder
  // here.
  std::string path;
  bool is_new = false;  // there is no checked-in entry
  // A tuned config, or which backend is best.
  bool is_best = false;
  proto::TunedConfig checked_in, overlay;  // checked_in: not if is_new
  proto::BestBackend checked_in_best, overlay_best;  // the same
};

// Sorted by operator, hardware, key. Entries equal in both are left out.
absl::StatusOr<std::vector<StoreDifference>> DiffStore(
    const OperatorFolders& folders, absl::string_view overlay_directory);

// Returns true if results change: the overlay's config is of another numerics
// class than the config that ran before, which is the checked-in one or else
// the default, or is batch-invariant no more. Returns nullopt if a class is
// unknown, and for a verdict of backends.
absl::optional<bool> ChangesNumerics(const StoreDifference& difference);

// Of the two, the config before is batch-invariant, and the overlay's is not.
bool LosesBatchInvariance(const StoreDifference& difference);

// The two sides as lines that begin with "-" and "+", and a line on numerics
// where something is known.
std::string FormatDifference(const StoreDifference& difference);

// Moves the overlay's entries of the operators for which `wanted` holds into
// the folders of these operators, then out of the overlay. Returns the files
// written. Interrupted in between, an entry is in both, and promoting again
// completes the move. NotFound, and nothing is moved, if an operator has no
// folder here.
absl::StatusOr<std::vector<std::string>> PromoteOverlay(
    const OperatorFolders& folders, absl::string_view overlay_directory,
    absl::FunctionRef<bool(absl::string_view)> wanted);
// Moves only those entries for which `moves` holds.
absl::StatusOr<std::vector<std::string>> PromoteOverlay(
    const OperatorFolders& folders, absl::string_view overlay_directory,
    absl::FunctionRef<bool(absl::string_view)> wanted,
    absl::FunctionRef<bool(const StoreDifference&)> moves);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_STORE_STORE_FILES_H_
