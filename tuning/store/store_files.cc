#include "tuning/store/store_files.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "tuning/proto/canonical.h"

namespace optrail::tuning {
namespace {

constexpr char kSuffix[] = ".textproto";
constexpr char kHeader[] =
    "# Tuned configs; written by Optrail, reviewed like code.\n"
    "# proto-file: tuning/proto/store.proto\n"
    "# proto-message: optrail.proto.TunedConfigs\n\n";

// What makes two entries of a file the same.
using EntryKey = std::tuple<std::string, int32_t, int>;

EntryKey KeyOf(const proto::TunedConfig& tuned) {
  return {tuned.shape(), tuned.threads(), tuned.cache_mode()};
}

// Names become parts of paths, so nothing else may be in them.
bool IsOperatorName(absl::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '_';
  });
}

bool IsHardwareId(absl::string_view id) {
  return !id.empty() && std::all_of(id.begin(), id.end(), [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
  });
}

absl::Status CheckNames(absl::string_view operator_name,
                        absl::string_view hardware_id,
                        proto::DeviceKind device_kind) {
  if (!IsOperatorName(operator_name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "operator_name is \"", operator_name, "\", expected [A-Za-z0-9_]+"));
  }
  if (!IsHardwareId(hardware_id)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "hardware_id is \"", hardware_id, "\", expected [a-z0-9-]+"));
  }
  if (device_kind == proto::DEVICE_KIND_UNSPECIFIED) {
    return absl::InvalidArgumentError(
        "device_kind is missing, expected CPU or CUDA");
  }
  return absl::OkStatus();
}

// Puts shape and config into their canonical text.
absl::Status Normalise(const TextProtoPlace& place, proto::TunedConfig* tuned) {
  const absl::StatusOr<proto::Shape> shape = ParseShape(tuned->shape());
  if (!shape.ok()) {
    return place.Child("shape").Error(shape.status().message());
  }
  const absl::StatusOr<proto::Config> config = ParseConfig(tuned->config());
  if (!config.ok()) {
    return place.Child("config").Error(config.status().message());
  }
  tuned->set_shape(CanonicalText(*shape));
  tuned->set_config(CanonicalText(*config));
  if (tuned->threads() < 1) {
    return place.Child("threads").Error(
        absl::StrCat("threads is ", tuned->threads(), ", expected at least 1"));
  }
  if (tuned->cache_mode() == proto::CACHE_MODE_UNSPECIFIED) {
    return place.Child("cache_mode")
        .Error("cache_mode is missing, expected HOT or COLD");
  }
  return absl::OkStatus();
}

std::string OverlayPath(absl::string_view directory, absl::string_view op,
                        absl::string_view hardware) {
  return JoinPath(directory, op, absl::StrCat(hardware, kSuffix));
}

std::string TreePath(absl::string_view directory, absl::string_view op,
                     absl::string_view hardware) {
  return JoinPath(directory, op, "tuned", absl::StrCat(hardware, kSuffix));
}

// A file must say what its path says; otherwise writing it back would go
// somewhere else.
absl::StatusOr<proto::TunedConfigs> ReadTunedFile(const std::string& path,
                                                  absl::string_view op) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  OPTRAIL_ASSIGN_OR_RETURN(proto::TunedConfigs configs,
                           ParseTunedConfigs(text, path));
  const absl::string_view stem = absl::StripSuffix(FileNameOf(path), kSuffix);
  if (configs.operator_name() != op || configs.hardware_id() != stem) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": the file is about operator \"", configs.operator_name(),
        "\" on \"", configs.hardware_id(), "\", expected \"", op, "\" on \"",
        stem, "\" as its path says"));
  }
  return configs;
}

absl::StatusOr<std::vector<proto::TunedConfigs>> ReadDirectory(
    absl::string_view directory, bool tree) {
  std::vector<proto::TunedConfigs> all;
  const std::string root(directory);
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                           ListRecursively(root, kSuffix));
  for (const std::string& path : paths) {
    std::string parent = DirectoryOf(path);
    if (tree) {
      // Space and shapes files stand in the same tree.
      if (FileNameOf(parent) != "tuned") continue;
      parent = DirectoryOf(parent);
    }
    OPTRAIL_ASSIGN_OR_RETURN(proto::TunedConfigs configs,
                             ReadTunedFile(path, FileNameOf(parent)));
    all.push_back(std::move(configs));
  }
  return all;
}

// Replaces the entry of the same key, or adds one.
void Put(const proto::TunedConfig& tuned, proto::TunedConfigs* configs) {
  for (proto::TunedConfig& existing : *configs->mutable_tuned()) {
    if (KeyOf(existing) == KeyOf(tuned)) {
      existing = tuned;
      return;
    }
  }
  *configs->add_tuned() = tuned;
}

void Remove(const proto::TunedConfig& tuned, proto::TunedConfigs* configs) {
  auto& entries = *configs->mutable_tuned();
  entries.erase(std::remove_if(entries.begin(), entries.end(),
                               [&](const proto::TunedConfig& entry) {
                                 return KeyOf(entry) == KeyOf(tuned);
                               }),
                entries.end());
}

// The file's contents; what a new file begins with where there is none.
absl::StatusOr<proto::TunedConfigs> ReadOrNew(const std::string& path,
                                              absl::string_view op,
                                              absl::string_view hardware,
                                              proto::DeviceKind device) {
  if (!FileExists(path)) {
    proto::TunedConfigs configs;
    configs.set_operator_name(std::string(op));
    configs.set_hardware_id(std::string(hardware));
    configs.set_device_kind(device);
    return configs;
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
  if (configs.tuned().empty()) return RemoveFile(path);
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(DirectoryOf(path)));
  return WriteFileAtomically(path, FormatTunedConfigs(configs));
}

// Taken by whoever changes the overlay. Readers need no lock: a file is old or
// new, never half.
absl::StatusOr<FileLock> LockOverlay(absl::string_view directory) {
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(std::string(directory)));
  return FileLock::Wait(JoinPath(directory, ".lock"));
}

bool Same(const proto::TunedConfig& a, const proto::TunedConfig& b) {
  return PrintTextProto(a) == PrintTextProto(b);
}

// Every entry of the overlay beside its checked-in one.
absl::StatusOr<std::vector<StoreDifference>> Pairs(
    absl::string_view checked_in_directory,
    absl::string_view overlay_directory) {
  OPTRAIL_ASSIGN_OR_RETURN(const auto overlay, ReadOverlay(overlay_directory));
  std::vector<StoreDifference> pairs;
  for (const proto::TunedConfigs& configs : overlay) {
    OPTRAIL_ASSIGN_OR_RETURN(
        const proto::TunedConfigs checked_in,
        ReadOrNew(TreePath(checked_in_directory, configs.operator_name(),
                           configs.hardware_id()),
                  configs.operator_name(), configs.hardware_id(),
                  configs.device_kind()));
    std::map<EntryKey, const proto::TunedConfig*> by_key;
    for (const proto::TunedConfig& tuned : checked_in.tuned()) {
      by_key[KeyOf(tuned)] = &tuned;
    }
    for (const proto::TunedConfig& tuned : configs.tuned()) {
      StoreDifference pair;
      pair.operator_name = configs.operator_name();
      pair.hardware_id = configs.hardware_id();
      pair.device_kind = configs.device_kind();
      pair.overlay = tuned;
      const auto found = by_key.find(KeyOf(tuned));
      pair.is_new = found == by_key.end();
      if (!pair.is_new) pair.checked_in = *found->second;
      pairs.push_back(std::move(pair));
    }
  }
  return pairs;
}

}  // namespace

absl::StatusOr<proto::TunedConfigs> ParseTunedConfigs(absl::string_view text,
                                                      absl::string_view path) {
  OPTRAIL_ASSIGN_OR_RETURN(auto file,
                           ParseTextProto<proto::TunedConfigs>(text, path));
  proto::TunedConfigs& configs = file.message;
  const absl::Status names = CheckNames(
      configs.operator_name(), configs.hardware_id(), configs.device_kind());
  if (!names.ok()) return file.root().Error(names.message());
  std::map<EntryKey, int> lines;
  for (int i = 0; i < configs.tuned_size(); ++i) {
    const TextProtoPlace place = file.root().Child("tuned", i);
    OPTRAIL_RETURN_IF_ERROR(Normalise(place, configs.mutable_tuned(i)));
    const auto [it, inserted] =
        lines.emplace(KeyOf(configs.tuned(i)), place.line());
    if (!inserted) {
      return place.Error(
          absl::StrCat("shape ", configs.tuned(i).shape(), ", threads ",
                       configs.tuned(i).threads(), ", ",
                       CacheModeName(configs.tuned(i).cache_mode()),
                       " has two entries, the first in line ", it->second));
    }
  }
  return std::move(configs);
}

std::string FormatTunedConfigs(proto::TunedConfigs configs) {
  std::sort(configs.mutable_tuned()->begin(), configs.mutable_tuned()->end(),
            [](const proto::TunedConfig& a, const proto::TunedConfig& b) {
              return KeyOf(a) < KeyOf(b);
            });
  return absl::StrCat(kHeader, PrintTextProto(configs));
}

absl::StatusOr<std::vector<proto::TunedConfigs>> ReadOverlay(
    absl::string_view directory) {
  return ReadDirectory(directory, /*tree=*/false);
}

absl::StatusOr<std::vector<proto::TunedConfigs>> ReadTree(
    absl::string_view directory) {
  return ReadDirectory(directory, /*tree=*/true);
}

absl::Status WriteOverlay(absl::string_view overlay_directory,
                          absl::string_view operator_name,
                          absl::string_view hardware_id,
                          proto::DeviceKind device_kind,
                          const proto::TunedConfig& tuned) {
  OPTRAIL_RETURN_IF_ERROR(CheckNames(operator_name, hardware_id, device_kind));
  proto::TunedConfigs single;
  single.set_operator_name(std::string(operator_name));
  single.set_hardware_id(std::string(hardware_id));
  single.set_device_kind(device_kind);
  *single.add_tuned() = tuned;
  // Nothing is written that could not be read.
  OPTRAIL_ASSIGN_OR_RETURN(
      const proto::TunedConfigs checked,
      ParseTunedConfigs(FormatTunedConfigs(single), "the entry to write"));
  OPTRAIL_ASSIGN_OR_RETURN(const FileLock lock, LockOverlay(overlay_directory));
  const std::string path =
      OverlayPath(overlay_directory, operator_name, hardware_id);
  OPTRAIL_ASSIGN_OR_RETURN(
      proto::TunedConfigs configs,
      ReadOrNew(path, operator_name, hardware_id, device_kind));
  Put(checked.tuned(0), &configs);
  return WriteTunedFile(path, configs);
}

absl::StatusOr<std::vector<StoreDifference>> DiffStore(
    absl::string_view checked_in_directory,
    absl::string_view overlay_directory) {
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<StoreDifference> pairs,
                           Pairs(checked_in_directory, overlay_directory));
  pairs.erase(std::remove_if(pairs.begin(), pairs.end(),
                             [](const StoreDifference& pair) {
                               return !pair.is_new &&
                                      Same(pair.checked_in, pair.overlay);
                             }),
              pairs.end());
  return pairs;
}

std::string FormatDifference(const StoreDifference& difference) {
  std::string text = absl::StrCat(
      difference.operator_name, " on ", difference.hardware_id, ", ",
      difference.overlay.shape(), ", ", difference.overlay.threads(),
      " threads, ", CacheModeName(difference.overlay.cache_mode()), "\n");
  const auto add = [&](const char* sign, const proto::TunedConfig& tuned) {
    for (absl::string_view line :
         absl::StrSplit(PrintTextProto(tuned), '\n', absl::SkipEmpty())) {
      absl::StrAppend(&text, sign, " ", line, "\n");
    }
  };
  if (!difference.is_new) add("-", difference.checked_in);
  add("+", difference.overlay);
  return text;
}

absl::StatusOr<std::vector<std::string>> PromoteOverlay(
    absl::string_view checked_in_directory, absl::string_view overlay_directory,
    absl::FunctionRef<bool(const StoreDifference&)> filter) {
  OPTRAIL_ASSIGN_OR_RETURN(const FileLock lock, LockOverlay(overlay_directory));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<StoreDifference> pairs,
                           Pairs(checked_in_directory, overlay_directory));
  // By checked-in file. Equal entries move, too: they only leave the overlay.
  std::map<std::string, std::vector<const StoreDifference*>> by_file;
  for (const StoreDifference& pair : pairs) {
    if (filter(pair)) {
      by_file[TreePath(checked_in_directory, pair.operator_name,
                       pair.hardware_id)]
          .push_back(&pair);
    }
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
      Put(pair->overlay, &checked_in);
      Remove(pair->overlay, &overlay);
    }
    OPTRAIL_RETURN_IF_ERROR(WriteTunedFile(path, checked_in));
    written.push_back(path);
    OPTRAIL_RETURN_IF_ERROR(WriteTunedFile(overlay_path, overlay));
  }
  return written;
}

}  // namespace optrail::tuning
