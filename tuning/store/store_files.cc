#include "tuning/store/store_files.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/textproto.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/numerics_text.h"
#include "tuning/store/tuned_entry.h"
#include "tuning/store/tuned_text.h"

namespace optrail::tuning {
namespace {

constexpr char kSuffix[] = ".textproto";

std::string OverlayPath(absl::string_view directory, absl::string_view op,
                        absl::string_view hardware) {
  return JoinPath(directory, op, absl::StrCat(hardware, kSuffix));
}

// In the operator's folder.
std::string TreePath(absl::string_view folder, absl::string_view hardware) {
  return JoinPath(folder, "tuned", absl::StrCat(hardware, kSuffix));
}

absl::StatusOr<proto::TunedConfigs> ReadTunedFile(
    const std::string& path, absl::string_view op,
    std::vector<std::string>* mended = nullptr) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadRegularFile(path));
  OPTRAIL_ASSIGN_OR_RETURN(proto::TunedConfigs configs,
                           ParseTunedConfigs(text, path, mended));
  OPTRAIL_RETURN_IF_ERROR(CheckPlace(configs, op, path));
  return configs;
}

// Replaces the entry of the same key, or adds one.
template <typename Entry>
void Put(const Entry& entry,
         google::protobuf::RepeatedPtrField<Entry>* entries) {
  for (Entry& existing : *entries) {
    if (EntryKeyOf(existing) == EntryKeyOf(entry)) {
      existing = entry;
      return;
    }
  }
  *entries->Add() = entry;
}

template <typename Entry>
void Remove(const Entry& entry,
            google::protobuf::RepeatedPtrField<Entry>* entries) {
  entries->erase(std::remove_if(entries->begin(), entries->end(),
                                [&](const Entry& existing) {
                                  return EntryKeyOf(existing) ==
                                         EntryKeyOf(entry);
                                }),
                 entries->end());
}

template <typename Entry>
const Entry* Find(const Entry& wanted,
                  const google::protobuf::RepeatedPtrField<Entry>& entries) {
  for (const Entry& entry : entries) {
    if (EntryKeyOf(entry) == EntryKeyOf(wanted)) return &entry;
  }
  return nullptr;
}

proto::TunedConfigs Header(absl::string_view operator_name,
                           absl::string_view hardware_id,
                           proto::DeviceKind device_kind) {
  proto::TunedConfigs configs;
  configs.set_operator_name(std::string(operator_name));
  configs.set_hardware_id(std::string(hardware_id));
  configs.set_device_kind(device_kind);
  return configs;
}

// The file's contents; what a new file begins with where there is none.
absl::StatusOr<proto::TunedConfigs> ReadOrNew(const std::string& path,
                                              absl::string_view op,
                                              absl::string_view hardware,
                                              proto::DeviceKind device) {
  if (!FileExists(path)) {
    return Header(op, hardware, device);
  }
  OPTRAIL_ASSIGN_OR_RETURN(proto::TunedConfigs configs,
                           ReadTunedFile(path, op));
  if (configs.device_kind() != device) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": device_kind is ", DeviceName(configs.device_kind()),
        ", expected ", DeviceName(device)));
  }
  return configs;
}

absl::Status WriteTunedFile(const std::string& path,
                            const proto::TunedConfigs& configs) {
  if (configs.tuned().empty() && configs.best().empty()) {
    return RemoveFile(path);
  }
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(DirectoryOf(path)));
  return WriteFileAtomically(path, FormatTunedConfigs(configs));
}

// Taken by whoever changes the overlay. Readers need no lock: a file is old or
// new, never half.
absl::StatusOr<FileLock> LockOverlay(absl::string_view directory) {
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(std::string(directory)));
  return FileLock::Wait(JoinPath(directory, ".lock"));
}

bool IsAsCheckedIn(const StoreDifference& pair) {
  if (pair.is_new) return false;
  return pair.is_best ? Same(pair.checked_in_best, pair.overlay_best)
                      : Same(pair.checked_in, pair.overlay);
}

// Every entry of the overlay beside its checked-in one. `elsewhere`: also those
// of operators that have no folder here.
absl::StatusOr<std::vector<StoreDifference>> Pairs(
    const OperatorFolders& folders, absl::string_view overlay_directory,
    bool elsewhere, absl::FunctionRef<bool(absl::string_view)> wanted) {
  OPTRAIL_ASSIGN_OR_RETURN(const auto overlay, ReadOverlay(overlay_directory));
  std::vector<StoreDifference> pairs;
  for (const proto::TunedConfigs& configs : overlay) {
    if (!wanted(configs.operator_name())) continue;
    StoreDifference pair;
    pair.operator_name = configs.operator_name();
    pair.hardware_id = configs.hardware_id();
    pair.device_kind = configs.device_kind();
    const absl::StatusOr<std::string> folder =
        folders.FolderOf(configs.operator_name());
    proto::TunedConfigs checked_in;
    if (folder.ok()) {
      pair.path = TreePath(*folder, configs.hardware_id());
      OPTRAIL_ASSIGN_OR_RETURN(
          checked_in, ReadOrNew(pair.path, configs.operator_name(),
                                configs.hardware_id(), configs.device_kind()));
    } else if (!elsewhere || !absl::IsNotFound(folder.status())) {
      return folder.status();
    }
    for (const proto::TunedConfig& tuned : configs.tuned()) {
      StoreDifference& added = pairs.emplace_back(pair);
      added.overlay = tuned;
      const auto* found = Find(tuned, checked_in.tuned());
      added.is_new = found == nullptr;
      if (found != nullptr) added.checked_in = *found;
    }
    for (const proto::BestBackend& best : configs.best()) {
      StoreDifference& added = pairs.emplace_back(pair);
      added.is_best = true;
      added.overlay_best = best;
      const auto* found = Find(best, checked_in.best());
      added.is_new = found == nullptr;
      if (found != nullptr) added.checked_in_best = *found;
    }
  }
  return pairs;
}

// Adds the entries of `added`, which is checked, to the overlay.
absl::Status AddToOverlay(absl::string_view overlay_directory,
                          proto::TunedConfigs added) {
  OPTRAIL_RETURN_IF_ERROR(CheckNames(added.operator_name(), added.hardware_id(),
                                     added.device_kind()));
  // Nothing is written that could not be read.
  OPTRAIL_ASSIGN_OR_RETURN(added, ParseTunedConfigs(FormatTunedConfigs(added),
                                                    "the entry to write"));
  OPTRAIL_ASSIGN_OR_RETURN(const FileLock lock, LockOverlay(overlay_directory));
  const std::string path = OverlayPath(overlay_directory, added.operator_name(),
                                       added.hardware_id());
  OPTRAIL_ASSIGN_OR_RETURN(proto::TunedConfigs configs,
                           ReadOrNew(path, added.operator_name(),
                                     added.hardware_id(), added.device_kind()));
  for (const auto& tuned : added.tuned()) Put(tuned, configs.mutable_tuned());
  for (const auto& best : added.best()) Put(best, configs.mutable_best());
  return WriteTunedFile(path, configs);
}

// A file, and what was mended to read it.
struct StoreFile {
  std::string path;
  proto::TunedConfigs configs;
  std::vector<std::string> mended;
};

absl::StatusOr<std::vector<StoreFile>> ReadOverlayFiles(
    absl::string_view directory) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                           ListRecursively(std::string(directory), kSuffix));
  std::vector<StoreFile> all;
  for (const std::string& path : paths) {
    const std::string parent = DirectoryOf(path);
    StoreFile& file = all.emplace_back();
    file.path = path;
    OPTRAIL_ASSIGN_OR_RETURN(
        file.configs, ReadTunedFile(path, FileNameOf(parent), &file.mended));
  }
  return all;
}

absl::StatusOr<std::vector<StoreFile>> ReadTreeFiles(
    const OperatorFolders& folders) {
  std::vector<StoreFile> all;
  for (const auto& [op, where] : folders.folders()) {
    for (const std::string& folder : where) {
      OPTRAIL_ASSIGN_OR_RETURN(
          const std::vector<std::string> paths,
          ListRecursively(JoinPath(folder, "tuned"), kSuffix));
      for (const std::string& path : paths) {
        OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadRegularFile(path));
        OPTRAIL_ASSIGN_OR_RETURN(proto::TunedConfigs configs,
                                 ParseTunedConfigs(text, path));
        // A folder may declare several operators.
        if (configs.operator_name() != op &&
            folders.folders().count(configs.operator_name()) != 0) {
          continue;
        }
        StoreFile& file = all.emplace_back();
        file.path = path;
        OPTRAIL_ASSIGN_OR_RETURN(file.configs,
                                 ReadTunedFile(path, op, &file.mended));
      }
    }
  }
  return all;
}

std::vector<proto::TunedConfigs> ConfigsOf(std::vector<StoreFile> files) {
  std::vector<proto::TunedConfigs> all;
  for (StoreFile& file : files) all.push_back(std::move(file.configs));
  return all;
}

// Why a file could not be written, and which were before it.
absl::Status After(const std::vector<std::string>& written,
                   const absl::Status& failure) {
  if (failure.ok() || written.empty()) return failure;
  return absl::Status(
      failure.code(),
      absl::StrCat(failure.message(),
                   "; written before that: ", absl::StrJoin(written, ", "),
                   "; next: mend the cause, and the same command goes on"));
}

}  // namespace

absl::StatusOr<std::vector<proto::TunedConfigs>> ReadOverlay(
    absl::string_view directory) {
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<StoreFile> files,
                           ReadOverlayFiles(directory));
  return ConfigsOf(std::move(files));
}

absl::StatusOr<std::vector<proto::TunedConfigs>> ReadTree(
    const OperatorFolders& folders) {
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<StoreFile> files,
                           ReadTreeFiles(folders));
  return ConfigsOf(std::move(files));
}

std::vector<proto::TunedConfigs> EntriesMissingFrom(
    const std::vector<proto::TunedConfigs>& built_in,
    const std::vector<proto::TunedConfigs>& tree) {
  std::vector<proto::TunedConfigs> missing;
  for (const proto::TunedConfigs& file : tree) {
    const auto same = std::find_if(
        built_in.begin(), built_in.end(), [&](const proto::TunedConfigs& of) {
          return of.operator_name() == file.operator_name() &&
                 of.hardware_id() == file.hardware_id() &&
                 of.device_kind() == file.device_kind();
        });
    const auto has = [&](const auto& entry, const auto& entries) {
      const auto* found = Find(entry, entries);
      return found != nullptr && Same(*found, entry);
    };
    proto::TunedConfigs lacks =
        Header(file.operator_name(), file.hardware_id(), file.device_kind());
    for (const proto::TunedConfig& tuned : file.tuned()) {
      if (same == built_in.end() || !has(tuned, same->tuned())) {
        *lacks.add_tuned() = tuned;
      }
    }
    for (const proto::BestBackend& best : file.best()) {
      if (same == built_in.end() || !has(best, same->best())) {
        *lacks.add_best() = best;
      }
    }
    if (lacks.tuned_size() + lacks.best_size() > 0) {
      missing.push_back(std::move(lacks));
    }
  }
  return missing;
}

absl::StatusOr<std::vector<std::string>> MendStore(
    const OperatorFolders& folders, absl::string_view overlay_directory) {
  OPTRAIL_ASSIGN_OR_RETURN(const FileLock lock, LockOverlay(overlay_directory));
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<StoreFile> files,
                           ReadTreeFiles(folders));
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<StoreFile> overlay,
                           ReadOverlayFiles(overlay_directory));
  std::move(overlay.begin(), overlay.end(), std::back_inserter(files));
  std::vector<std::string> mended, written;
  for (StoreFile& file : files) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::string text,
                             ReadRegularFile(file.path));
    if (text == FormatTunedConfigs(file.configs)) continue;
    if (file.mended.empty()) {
      file.mended.push_back(
          absl::StrCat(file.path, ": written in its short form"));
    }
    OPTRAIL_RETURN_IF_ERROR(
        After(written, WriteTunedFile(file.path, file.configs)));
    written.push_back(file.path);
    mended.insert(mended.end(), file.mended.begin(), file.mended.end());
  }
  return mended;
}

absl::Status CheckOverlayFile(absl::string_view overlay_directory,
                              absl::string_view operator_name,
                              absl::string_view hardware_id,
                              proto::DeviceKind device_kind) {
  OPTRAIL_RETURN_IF_ERROR(CheckNames(operator_name, hardware_id, device_kind));
  return ReadOrNew(OverlayPath(overlay_directory, operator_name, hardware_id),
                   operator_name, hardware_id, device_kind)
      .status();
}

absl::Status WriteOverlay(absl::string_view overlay_directory,
                          absl::string_view operator_name,
                          absl::string_view hardware_id,
                          proto::DeviceKind device_kind,
                          const proto::TunedConfig& tuned) {
  proto::TunedConfigs single = Header(operator_name, hardware_id, device_kind);
  *single.add_tuned() = tuned;
  return AddToOverlay(overlay_directory, std::move(single));
}

absl::Status WriteOverlay(absl::string_view overlay_directory,
                          absl::string_view operator_name,
                          absl::string_view hardware_id,
                          proto::DeviceKind device_kind,
                          const proto::BestBackend& best) {
  proto::TunedConfigs single = Header(operator_name, hardware_id, device_kind);
  *single.add_best() = best;
  return AddToOverlay(overlay_directory, std::move(single));
}

absl::StatusOr<std::vector<StoreDifference>> DiffStore(
    const OperatorFolders& folders, absl::string_view overlay_directory) {
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<StoreDifference> pairs,
                           Pairs(folders, overlay_directory, /*elsewhere=*/true,
                                 [](absl::string_view) { return true; }));
  pairs.erase(std::remove_if(pairs.begin(), pairs.end(),
                             [](const StoreDifference& pair) {
                               return IsAsCheckedIn(pair);
                             }),
              pairs.end());
  return pairs;
}

absl::optional<bool> ChangesNumerics(const StoreDifference& difference) {
  if (difference.is_best) return absl::nullopt;
  const proto::TunedConfig& overlay = difference.overlay;
  const proto::TunedConfig& checked_in = difference.checked_in;
  const bool runs_the_same =
      difference.is_new ? DefaultStayed(overlay)
                        : overlay.config() == checked_in.config() &&
                              overlay.kernel_id() == checked_in.kernel_id();
  if (runs_the_same) return false;
  const std::string& after = overlay.numerics();
  const std::string& before =
      difference.is_new ? overlay.default_numerics() : checked_in.numerics();
  if (after.empty() || before.empty()) return absl::nullopt;
  return !SameBits(after, before) || LosesBatchInvariance(difference);
}

bool LosesBatchInvariance(const StoreDifference& difference) {
  const proto::TunedConfig& overlay = difference.overlay;
  const NumericsClass after = ParseNumerics(overlay.numerics());
  return after.batch_invariant.has_value() && !*after.batch_invariant &&
         IsBatchInvariant(difference.is_new ? overlay.default_numerics()
                                            : difference.checked_in.numerics());
}

std::string FormatDifference(const StoreDifference& difference) {
  std::string text = absl::StrCat(
      difference.operator_name, " on ", difference.hardware_id, ", ",
      difference.is_best
          ? absl::StrCat("best backend, shape ",
                         EntryText(difference.overlay_best))
          : absl::StrCat("shape ", EntryText(difference.overlay)),
      "\n");
  const auto add = [&](const char* sign, const auto& entry) {
    for (absl::string_view line :
         absl::StrSplit(PrintTextProto(entry), '\n', absl::SkipEmpty())) {
      absl::StrAppend(&text, sign, " ", line, "\n");
    }
  };
  if (difference.is_best) {
    if (!difference.is_new) add("-", difference.checked_in_best);
    add("+", difference.overlay_best);
  } else {
    if (!difference.is_new) add("-", difference.checked_in);
    add("+", difference.overlay);
  }
  if (const absl::optional<bool> changes = ChangesNumerics(difference)) {
    absl::StrAppend(&text, "  numerics: ",
                    LosesBatchInvariance(difference)
                        ? "a row's bits depend on the number of rows now\n"
                    : *changes ? "results get other bits\n"
                               : "the same bits on fixed inputs\n");
  }
  return text;
}

absl::StatusOr<std::vector<std::string>> PromoteOverlay(
    const OperatorFolders& folders, absl::string_view overlay_directory,
    absl::FunctionRef<bool(absl::string_view)> wanted) {
  return PromoteOverlay(folders, overlay_directory, wanted,
                        [](const StoreDifference&) { return true; });
}

absl::StatusOr<std::vector<std::string>> PromoteOverlay(
    const OperatorFolders& folders, absl::string_view overlay_directory,
    absl::FunctionRef<bool(absl::string_view)> wanted,
    absl::FunctionRef<bool(const StoreDifference&)> moves) {
  OPTRAIL_ASSIGN_OR_RETURN(const FileLock lock, LockOverlay(overlay_directory));
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<StoreDifference> pairs,
      Pairs(folders, overlay_directory, /*elsewhere=*/false, wanted));
  // By checked-in file. Equal entries move, too: they only leave the overlay.
  std::map<std::string, std::vector<const StoreDifference*>> by_file;
  for (const StoreDifference& pair : pairs) {
    if (moves(pair)) by_file[pair.path].push_back(&pair);
  }
  std::vector<std::string> written;
  for (const auto& [path, moving] : by_file) {
    const StoreDifference& first = *moving.front();
    const std::string overlay_path =
        OverlayPath(overlay_directory, first.operator_name, first.hardware_id);
    OPTRAIL_ASSIGN_OR_RETURN(proto::TunedConfigs checked_in,
                             ReadOrNew(path, first.operator_name,
                                       first.hardware_id, first.device_kind));
    OPTRAIL_ASSIGN_OR_RETURN(proto::TunedConfigs overlay,
                             ReadOrNew(overlay_path, first.operator_name,
                                       first.hardware_id, first.device_kind));
    for (const StoreDifference* pair : moving) {
      if (pair->is_best) {
        Put(pair->overlay_best, checked_in.mutable_best());
        Remove(pair->overlay_best, overlay.mutable_best());
      } else {
        Put(pair->overlay, checked_in.mutable_tuned());
        Remove(pair->overlay, overlay.mutable_tuned());
      }
    }
    OPTRAIL_RETURN_IF_ERROR(After(written, WriteTunedFile(path, checked_in)));
    written.push_back(path);
    OPTRAIL_RETURN_IF_ERROR(
        After(written, WriteTunedFile(overlay_path, overlay)));
  }
  return written;
}

}  // namespace optrail::tuning
