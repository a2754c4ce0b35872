#include "tuning/store/store.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/store_files.h"

namespace optrail::tuning {
namespace {

// What a memory of the predicate's answer says.
enum Validity : uint8_t { kUnknown, kValid, kInvalid };

struct Entry {
  std::string operator_name;
  std::string hardware_id;
  proto::DeviceKind device_kind = proto::DEVICE_KIND_UNSPECIFIED;
  bool from_overlay = false;
  proto::TunedConfig tuned;
  proto::Shape shape;
  proto::Config config;
  mutable std::atomic<uint8_t> validity{kUnknown};
};

uint64_t KeyHash(absl::string_view operator_name, absl::string_view hardware_id,
                 int device_kind, int threads, int cache_mode,
                 const proto::Shape& shape) {
  size_t hash = absl::HashOf(operator_name, hardware_id, device_kind, threads,
                             cache_mode);
  for (const proto::Dim& dim : shape.dims()) {
    hash = absl::HashOf(hash, absl::string_view(dim.name()), dim.value());
  }
  for (int type : shape.data_types()) hash = absl::HashOf(hash, type);
  return hash;
}

bool SameShape(const proto::Shape& a, const proto::Shape& b) {
  if (a.dims_size() != b.dims_size() ||
      a.data_types_size() != b.data_types_size()) {
    return false;
  }
  for (int i = 0; i < a.dims_size(); ++i) {
    if (a.dims(i).value() != b.dims(i).value() ||
        a.dims(i).name() != b.dims(i).name()) {
      return false;
    }
  }
  return std::equal(a.data_types().begin(), a.data_types().end(),
                    b.data_types().begin());
}

bool Matches(const Entry& entry, const LookupRequest& request) {
  return entry.tuned.threads() == request.threads &&
         entry.tuned.cache_mode() == request.cache_mode &&
         entry.device_kind == request.device_kind &&
         SameShape(entry.shape, *request.shape) &&
         entry.operator_name == request.operator_name &&
         entry.hardware_id == request.hardware_id;
}

// How many leading parts ("amd", "epyc", "zen4") two hardware ids share.
int SharedParts(absl::string_view a, absl::string_view b) {
  const std::vector<absl::string_view> x = absl::StrSplit(a, '-');
  const std::vector<absl::string_view> y = absl::StrSplit(b, '-');
  size_t n = 0;
  while (n < x.size() && n < y.size() && x[n] == y[n]) ++n;
  return static_cast<int>(n);
}

bool Accepts(const LookupRequest& request, const proto::Config& config) {
  return request.is_valid == nullptr || (*request.is_valid)(config);
}

// The predicate's answer for an exact match never changes, so it is asked once.
bool AcceptsExact(const LookupRequest& request, const Entry& entry) {
  if (request.is_valid == nullptr) return true;
  uint8_t validity = entry.validity.load(std::memory_order_relaxed);
  if (validity == kUnknown) {
    validity = (*request.is_valid)(entry.config) ? kValid : kInvalid;
    entry.validity.store(validity, std::memory_order_relaxed);
  }
  return validity == kValid;
}

LookupResult Found(LookupSource source, const Entry& entry,
                   const LookupRequest& request) {
  LookupResult result;
  result.source = source;
  result.config = &entry.config;
  result.tuned = &entry.tuned;
  result.hardware_id = entry.hardware_id;
  result.unverified =
      request.kernel_id.empty() || entry.tuned.kernel_id() != request.kernel_id;
  result.from_overlay = entry.from_overlay;
  return result;
}

std::string DescribeRequest(const LookupRequest& request) {
  return absl::StrCat(request.operator_name, " ", CanonicalText(*request.shape),
                      " on ", request.hardware_id);
}

}  // namespace

absl::string_view LookupSourceName(LookupSource source) {
  switch (source) {
    case LookupSource::kExact:
      return "exact";
    case LookupSource::kNearest:
      return "nearest";
    case LookupSource::kDefault:
      return "default";
  }
  return "?";
}

absl::optional<double> ShapeDistance(const proto::Shape& a,
                                     const proto::Shape& b) {
  if (a.dims_size() != b.dims_size() ||
      !std::equal(a.data_types().begin(), a.data_types().end(),
                  b.data_types().begin(), b.data_types().end())) {
    return absl::nullopt;
  }
  double distance = 0;
  for (int i = 0; i < a.dims_size(); ++i) {
    if (a.dims(i).name() != b.dims(i).name()) return absl::nullopt;
    distance += std::abs(std::log2(static_cast<double>(a.dims(i).value()) /
                                   static_cast<double>(b.dims(i).value())));
  }
  return distance;
}

struct TunedConfigStore::Impl {
  // A deque, because entries hold an atomic and can't move.
  std::deque<Entry> entries;
  // Open addressing over indices into `entries`; its size is a power of two,
  // at most half full. -1 is free.
  std::vector<int32_t> table;
  std::map<std::string, std::vector<const Entry*>, std::less<>> by_operator;
  std::vector<std::string> warnings;

  using Contents = std::map<std::tuple<std::string, int, std::string>,
                            std::map<std::tuple<std::string, int32_t, int>,
                                     std::pair<proto::TunedConfig, bool>>>;

  static void Merge(const proto::TunedConfigs& configs, bool overlay,
                    Contents* contents) {
    auto& file = (*contents)[{configs.operator_name(), configs.device_kind(),
                              configs.hardware_id()}];
    for (const proto::TunedConfig& tuned : configs.tuned()) {
      file[{tuned.shape(), tuned.threads(), tuned.cache_mode()}] = {tuned,
                                                                    overlay};
    }
  }

  void Build(const Contents& contents) {
    for (const auto& [key, file] : contents) {
      for (const auto& [unused, value] : file) {
        Entry& entry = entries.emplace_back();
        entry.operator_name = std::get<0>(key);
        entry.device_kind = static_cast<proto::DeviceKind>(std::get<1>(key));
        entry.hardware_id = std::get<2>(key);
        entry.tuned = value.first;
        entry.from_overlay = value.second;
        // Both were parsed when their file was read.
        entry.shape = *ParseShape(entry.tuned.shape());
        entry.config = *ParseConfig(entry.tuned.config());
        by_operator[entry.operator_name].push_back(&entry);
      }
    }
    size_t slots = 16;
    while (slots < 2 * entries.size()) slots *= 2;
    table.assign(slots, -1);
    for (size_t i = 0; i < entries.size(); ++i) {
      const Entry& e = entries[i];
      size_t slot = KeyHash(e.operator_name, e.hardware_id, e.device_kind,
                            e.tuned.threads(), e.tuned.cache_mode(), e.shape);
      while (table[slot & (slots - 1)] >= 0) ++slot;
      table[slot & (slots - 1)] = static_cast<int32_t>(i);
    }
  }

  const Entry* FindExact(const LookupRequest& request) const {
    size_t slot =
        KeyHash(request.operator_name, request.hardware_id, request.device_kind,
                request.threads, request.cache_mode, *request.shape);
    const size_t mask = table.size() - 1;
    for (; table[slot & mask] >= 0; ++slot) {
      const Entry& entry = entries[table[slot & mask]];
      if (Matches(entry, request)) return &entry;
    }
    return nullptr;
  }

  LookupResult FindNearest(const LookupRequest& request,
                           const Entry* refused) const;
};

LookupResult TunedConfigStore::Impl::FindNearest(const LookupRequest& request,
                                                 const Entry* refused) const {
  struct Candidate {
    int foreign;  // 0 on this hardware, else the smaller the nearer
    double distance;
    double shape_distance;
    const Entry* entry;
  };
  std::string warning;
  if (refused != nullptr) {
    warning =
        absl::StrCat("the config tuned for ", DescribeRequest(request), " (",
                     refused->tuned.config(), ") is not valid here; ");
  }
  std::vector<Candidate> candidates;
  const auto found = by_operator.find(request.operator_name);
  if (found != by_operator.end()) {
    for (const Entry* entry : found->second) {
      const absl::optional<double> shape_distance =
          ShapeDistance(entry->shape, *request.shape);
      if (entry == refused || entry->device_kind != request.device_kind ||
          !shape_distance.has_value()) {
        continue;
      }
      const double threads =
          std::abs(std::log2(static_cast<double>(entry->tuned.threads()) /
                             std::max(1, request.threads)));
      const double mode =
          entry->tuned.cache_mode() == request.cache_mode ? 0 : 1;
      const int foreign =
          entry->hardware_id == request.hardware_id
              ? 0
              : 1000 - SharedParts(entry->hardware_id, request.hardware_id);
      candidates.push_back(
          {foreign, *shape_distance + threads + mode, *shape_distance, entry});
    }
  }
  // Entries are sorted, so a stable sort breaks ties by name.
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return std::tie(a.foreign, a.distance) <
                            std::tie(b.foreign, b.distance);
                   });
  for (const Candidate& candidate : candidates) {
    const Entry& entry = *candidate.entry;
    if (!Accepts(request, entry.config)) continue;
    LookupResult result = Found(LookupSource::kNearest, entry, request);
    result.shape_distance = candidate.shape_distance;
    result.warning = absl::StrCat(
        warning, "using the config tuned for ", entry.tuned.shape(), ", ",
        entry.tuned.threads(), " threads, ",
        CacheModeName(entry.tuned.cache_mode()),
        candidate.foreign == 0
            ? ""
            : absl::StrCat(", on other hardware, ", entry.hardware_id),
        ", in place of one for ", DescribeRequest(request));
    return result;
  }
  LookupResult result;
  result.warning =
      absl::StrCat(warning, "no tuned config fits ", DescribeRequest(request),
                   "; the default is used");
  return result;
}

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
  for (const TunedFile& file : options.checked_in) {
    OPTRAIL_ASSIGN_OR_RETURN(const proto::TunedConfigs configs,
                             ParseTunedConfigs(file.text, file.path));
    Impl::Merge(configs, /*overlay=*/false, &contents);
  }
  if (!options.checked_in_directory.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(const auto tree,
                             ReadTree(options.checked_in_directory));
    for (const proto::TunedConfigs& configs : tree) {
      Impl::Merge(configs, /*overlay=*/false, &contents);
    }
  }
  TunedConfigStore store;
  store.impl_ = std::make_unique<Impl>();
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
      const absl::StatusOr<std::string> text = ReadFile(path);
      const absl::StatusOr<proto::TunedConfigs> configs =
          text.ok() ? ParseTunedConfigs(*text, path)
                    : absl::StatusOr<proto::TunedConfigs>(text.status());
      if (configs.ok()) {
        Impl::Merge(*configs, /*overlay=*/true, &contents);
      } else {
        warn(configs.status());
      }
    }
  }
  store.impl_->Build(contents);
  return store;
}

LookupResult TunedConfigStore::Lookup(const LookupRequest& request) const {
  OPTRAIL_CHECK(request.shape != nullptr) << "a lookup needs a shape";
  const Entry* exact = impl_->FindExact(request);
  if (exact != nullptr && AcceptsExact(request, *exact)) {
    return Found(LookupSource::kExact, *exact, request);
  }
  return impl_->FindNearest(request, exact);
}

std::vector<proto::TunedConfigs> TunedConfigStore::Contents() const {
  std::vector<proto::TunedConfigs> contents;
  for (const Entry& entry : impl_->entries) {
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
  return contents;
}

const std::vector<std::string>& TunedConfigStore::warnings() const {
  return impl_->warnings;
}

}  // namespace optrail::tuning
