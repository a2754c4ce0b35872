#include "tuning/store/store.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/store_entries.h"
#include "tuning/store/tuned_entry.h"
#include "tuning/store/tuned_text.h"

namespace optrail::tuning {
namespace {

template <typename Value>
using TunedEntries = std::map<EntryKey, Value>;

// Says what has changed since the backends were compared; "": nothing.
std::string WhyStale(const proto::BestBackend& best, proto::DeviceKind device,
                     const std::map<std::string, std::string>& ids) {
  std::string why;
  const auto name = [&](const std::string& backend) {
    return backend.empty() ? DeviceName(device) : backend;
  };
  std::map<std::string, std::string> left = ids;
  for (const proto::BestBackend::Entry& entry : best.entries()) {
    const auto now = left.find(entry.backend());
    if (now == left.end()) {
      why = absl::StrCat(name(entry.backend()), " is not here now");
    } else if (now->second != entry.id()) {
      why = absl::StrCat(name(entry.backend()), " was ", entry.id(),
                         " when the backends were compared, now ", now->second);
    }
    if (now != left.end()) left.erase(now);
  }
  for (const proto::BestBackend::Refused& refused : best.refused()) {
    // One that has gone since could not have won.
    const auto now = left.find(refused.backend());
    if (now == left.end()) continue;
    if (now->second != refused.id()) {
      why = absl::StrCat(name(refused.backend()), " was ", refused.id(),
                         " when it could not be compared (", refused.why(),
                         "), now ", now->second);
    }
    left.erase(now);
  }
  if (why.empty() && !left.empty()) {
    why = absl::StrCat(name(left.begin()->first),
                       " was not among those that were compared");
  }
  return why;
}

}  // namespace

LookupRequest RequestOf(const proto::Task& task) {
  LookupRequest request;
  request.operator_name = task.operator_name();
  request.shape = &task.shape();
  request.threads = task.threads();
  request.cache_mode = task.cache_mode();
  request.hardware_id = task.hardware_id();
  request.device_kind = task.device_kind();
  request.kernel_id = task.kernel_id();
  request.backend = task.backend();
  request.launch_mode = task.launch_mode();
  request.devices = std::max(task.devices(), 1);
  return request;
}

struct TunedConfigStore::Impl {
  StoreEntries entries;
  std::vector<std::string> warnings;

  // By operator, device kind and hardware; each entry with whether the overlay
  // has it. An entry of the overlay replaces one of the same key.
  struct File {
    TunedEntries<std::pair<proto::TunedConfig, bool>> tuned;
    TunedEntries<std::pair<proto::BestBackend, bool>> best;
  };
  using FileKey = std::tuple<std::string, int, std::string>;
  using Contents = std::map<FileKey, File>;
  // After Build: the verdicts alone.
  std::map<FileKey, TunedEntries<std::pair<proto::BestBackend, bool>>> best;

  static void Merge(const proto::TunedConfigs& configs, bool overlay,
                    Contents* contents) {
    File& file = (*contents)[{configs.operator_name(), configs.device_kind(),
                              configs.hardware_id()}];
    for (const proto::TunedConfig& tuned : configs.tuned()) {
      file.tuned[EntryKeyOf(tuned)] = {tuned, overlay};
    }
    for (const proto::BestBackend& verdict : configs.best()) {
      file.best[EntryKeyOf(verdict)] = {verdict, overlay};
    }
  }

  void Build(const Contents& contents) {
    for (const auto& [key, file] : contents) {
      if (!file.best.empty()) best[key] = file.best;
      for (const auto& [unused, value] : file.tuned) {
        entries.Add(std::get<0>(key),
                    static_cast<proto::DeviceKind>(std::get<1>(key)),
                    std::get<2>(key), value.first, value.second);
      }
    }
    entries.Index();
  }
};

TunedConfigStore::TunedConfigStore() : impl_(std::make_unique<Impl>()) {
  impl_->Build({});
}
TunedConfigStore::~TunedConfigStore() = default;
TunedConfigStore::TunedConfigStore(TunedConfigStore&&) noexcept = default;
TunedConfigStore& TunedConfigStore::operator=(TunedConfigStore&&) noexcept =
    default;

absl::StatusOr<TunedConfigStore> TunedConfigStore::Load(
    const StoreOptions& options) {
  Impl::Contents contents;
  TunedConfigStore store;
  store.impl_ = std::make_unique<Impl>();
  for (const TunedFile& file : options.checked_in) {
    OPTRAIL_ASSIGN_OR_RETURN(
        const proto::TunedConfigs configs,
        ParseTunedConfigs(file.text, file.path, &store.impl_->warnings));
    Impl::Merge(configs, /*overlay=*/false, &contents);
  }
  if (!options.overlay_directory.empty()) {
    const auto warn = [&](const absl::Status& status) {
      store.impl_->warnings.push_back(
          absl::StrCat("tuned configs left out: ", status.message()));
    };
    // One by one, so that a broken file does not hide the others.
    const auto paths = ListRecursively(options.overlay_directory, ".textproto");
    if (!paths.ok()) warn(paths.status());
    for (const std::string& path :
         paths.ok() ? *paths : std::vector<std::string>()) {
      const absl::StatusOr<std::string> text = ReadRegularFile(path);
      const absl::StatusOr<proto::TunedConfigs> configs =
          text.ok() ? ParseTunedConfigs(*text, path, &store.impl_->warnings)
                    : absl::StatusOr<proto::TunedConfigs>(text.status());
      absl::Status status = configs.status();
      if (status.ok()) {
        status = CheckPlace(*configs, FileNameOf(DirectoryOf(path)), path);
      }
      if (status.ok()) {
        Impl::Merge(*configs, /*overlay=*/true, &contents);
      } else {
        warn(status);
      }
    }
  }
  store.impl_->Build(contents);
  return store;
}

LookupResult TunedConfigStore::Lookup(const LookupRequest& request) const {
  return impl_->entries.Lookup(request);
}

bool TunedConfigStore::Covers(const LookupRequest& request,
                              const Bucket& range) const {
  return impl_->entries.Covers(request, range);
}

BestResult TunedConfigStore::FindBest(
    const LookupRequest& request,
    const std::map<std::string, std::string>& ids) const {
  OPTRAIL_CHECK(request.shape != nullptr) << "a lookup needs a shape";
  BestResult result;
  proto::BestBackend wanted;
  wanted.set_shape(CanonicalText(*request.shape));
  wanted.set_threads(request.threads);
  wanted.set_cache_mode(request.cache_mode);
  wanted.set_launch_mode(request.launch_mode);
  if (request.devices > 1) wanted.set_devices(request.devices);
  if (request.objective != "time") {
    wanted.set_objective(std::string(request.objective));
  }
  const auto file =
      impl_->best.find({std::string(request.operator_name), request.device_kind,
                        std::string(request.hardware_id)});
  const auto* found = file == impl_->best.end() ? nullptr : [&] {
    const auto entry = file->second.find(EntryKeyOf(wanted));
    return entry == file->second.end() ? nullptr : &entry->second;
  }();
  if (found == nullptr) {
    result.why = absl::StrCat("the backends of ", DescribeRequest(request),
                              " were not compared yet");
    return result;
  }
  result.best = &found->first;
  result.from_overlay = found->second;
  result.why = WhyStale(*result.best, request.device_kind, ids);
  result.stale = !result.why.empty();
  return result;
}

std::vector<proto::TunedConfigs> TunedConfigStore::Contents(
    absl::optional<StoreLayer> layer) const {
  const auto wanted = [layer](bool from_overlay) {
    return !layer.has_value() ||
           (*layer == StoreLayer::kOverlay) == from_overlay;
  };
  std::vector<proto::TunedConfigs> contents;
  for (const StoreEntries::Entry& entry : impl_->entries.all()) {
    if (!wanted(entry.from_overlay)) continue;
    if (contents.empty() ||
        contents.back().operator_name() != entry.operator_name ||
        contents.back().device_kind() != entry.device_kind ||
        contents.back().hardware_id() != entry.hardware_id) {
      proto::TunedConfigs& configs = contents.emplace_back();
      configs.set_operator_name(entry.operator_name);
      configs.set_device_kind(entry.device_kind);
      configs.set_hardware_id(entry.hardware_id);
    }
    *contents.back().add_tuned() = entry.tuned;
  }
  for (const auto& [key, verdicts] : impl_->best) {
    const auto& [operator_name, device_kind, hardware_id] = key;
    if (std::none_of(verdicts.begin(), verdicts.end(),
                     [&](const auto& verdict) {
                       return wanted(verdict.second.second);
                     })) {
      continue;
    }
    auto file = std::find_if(contents.begin(), contents.end(),
                             [&](const proto::TunedConfigs& c) {
                               return c.operator_name() == std::get<0>(key) &&
                                      c.device_kind() == std::get<1>(key) &&
                                      c.hardware_id() == std::get<2>(key);
                             });
    if (file == contents.end()) {
      file = contents.emplace(contents.end());
      file->set_operator_name(operator_name);
      file->set_device_kind(static_cast<proto::DeviceKind>(device_kind));
      file->set_hardware_id(hardware_id);
    }
    for (const auto& [unused, verdict] : verdicts) {
      if (wanted(verdict.second)) *file->add_best() = verdict.first;
    }
  }
  return contents;
}

const std::vector<std::string>& TunedConfigStore::warnings() const {
  return impl_->warnings;
}

}  // namespace optrail::tuning
