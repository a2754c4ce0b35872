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
#include "base/file/file.h"
#include "base/status_macros.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/bucket.h"
#include "tuning/store/tuned_entry.h"
#include "tuning/store/tuned_text.h"

namespace optrail::tuning {
namespace {

template <typename Value>
using TunedEntries = std::map<EntryKey, Value>;

// The remembered answer of the predicate.
enum Validity : uint8_t { kUnknown, kValid, kInvalid };

struct Entry {
  std::string operator_name;
  std::string hardware_id;
  proto::DeviceKind device_kind = proto::DEVICE_KIND_UNSPECIFIED;
  bool from_overlay = false;
  proto::TunedConfig tuned;
  proto::Shape shape;
  proto::Config config;
  absl::optional<Bucket> bucket;
  mutable std::atomic<uint8_t> validity{kUnknown};
};

// What a request and an entry must agree on to be about the same.
struct Key {
  absl::string_view operator_name, hardware_id;
  int device_kind = 0, threads = 0, cache_mode = 0;
  absl::string_view backend;
  int launch_mode = 0;
  absl::string_view objective;
  int devices = 1;
};

bool operator==(const Key& a, const Key& b) {
  return a.threads == b.threads && a.cache_mode == b.cache_mode &&
         a.device_kind == b.device_kind && a.launch_mode == b.launch_mode &&
         a.devices == b.devices && a.operator_name == b.operator_name &&
         a.hardware_id == b.hardware_id && a.backend == b.backend &&
         a.objective == b.objective;
}

Key KeyOf(const Entry& entry) {
  return {entry.operator_name,
          entry.hardware_id,
          entry.device_kind,
          entry.tuned.threads(),
          entry.tuned.cache_mode(),
          entry.tuned.backend(),
          entry.tuned.launch_mode(),
          entry.tuned.objective(),
          std::max(entry.tuned.devices(), 1)};
}

Key KeyOf(const LookupRequest& request) {
  return {request.operator_name,
          request.hardware_id,
          request.device_kind,
          request.threads,
          request.cache_mode,
          request.backend,
          request.launch_mode,
          request.objective == "time" ? "" : request.objective,
          std::max(request.devices, 1)};
}

uint64_t KeyHash(const Key& key, const proto::Shape& shape) {
  // The rest seldom differs.
  size_t hash =
      absl::HashOf(key.operator_name, key.hardware_id, key.device_kind,
                   key.threads, key.cache_mode, key.backend);
  for (const proto::Dim& dim : shape.dims()) {
    hash = absl::HashOf(hash, absl::string_view(dim.name()), dim.value());
  }
  for (const proto::Attribute& attribute : shape.attributes()) {
    hash =
        absl::HashOf(hash, absl::string_view(attribute.name()),
                     attribute.int_(), absl::string_view(attribute.variant()));
  }
  for (int type : shape.data_types()) hash = absl::HashOf(hash, type);
  return hash;
}

bool SameAttributes(const proto::Shape& a, const proto::Shape& b) {
  if (a.attributes_size() != b.attributes_size()) return false;
  for (int i = 0; i < a.attributes_size(); ++i) {
    if (a.attributes(i).name() != b.attributes(i).name() ||
        !SameValue(a.attributes(i), b.attributes(i))) {
      return false;
    }
  }
  return true;
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
                    b.data_types().begin()) &&
         SameAttributes(a, b);
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

// Returns whether the winner of another shape is expected to beat the default
// here, too. An entry that kept the default has the other shape's default.
bool BeatsDefault(const LookupRequest& request, const Entry& entry) {
  return !entry.tuned.ties() && request.beats_default != nullptr &&
         (*request.beats_default)(entry.config);
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

// Returns whether the entry was measured with the request's kernel.
bool IsVerified(const LookupRequest& request, const Entry& entry) {
  return !request.kernel_id.empty() &&
         entry.tuned.kernel_id() == request.kernel_id;
}

LookupResult Found(LookupSource source, const Entry& entry,
                   const LookupRequest& request) {
  LookupResult result;
  result.source = source;
  result.config = &entry.config;
  result.tuned = &entry.tuned;
  result.hardware_id = entry.hardware_id;
  result.unverified = !IsVerified(request, entry);
  result.from_overlay = entry.from_overlay;
  return result;
}

std::string DescribeRequest(const LookupRequest& request) {
  std::string text =
      absl::StrCat(request.operator_name, " ", CanonicalText(*request.shape),
                   " on ", request.hardware_id);
  if (!request.backend.empty()) {
    absl::StrAppend(&text, " by ", request.backend);
  }
  if (!request.objective.empty()) {
    absl::StrAppend(&text, " for ", request.objective);
  }
  return text;
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

absl::optional<double> ShapeDistance(const proto::Shape& a,
                                     const proto::Shape& b) {
  if (a.dims_size() != b.dims_size() ||
      !std::equal(a.data_types().begin(), a.data_types().end(),
                  b.data_types().begin(), b.data_types().end()) ||
      !SameAttributes(a, b)) {
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
        Entry& entry = entries.emplace_back();
        entry.operator_name = std::get<0>(key);
        entry.device_kind = static_cast<proto::DeviceKind>(std::get<1>(key));
        entry.hardware_id = std::get<2>(key);
        entry.tuned = value.first;
        entry.from_overlay = value.second;
        // All were parsed when their file was read.
        entry.shape = *ParseShape(entry.tuned.shape());
        entry.config = *ParseConfig(entry.tuned.config());
        if (!entry.tuned.bucket().empty()) {
          entry.bucket = *Bucket::Parse(entry.tuned.bucket());
        }
        by_operator[entry.operator_name].push_back(&entry);
      }
    }
    size_t slots = 16;
    while (slots < 2 * entries.size()) slots *= 2;
    table.assign(slots, -1);
    for (size_t i = 0; i < entries.size(); ++i) {
      const Entry& e = entries[i];
      size_t slot = KeyHash(KeyOf(e), e.shape);
      while (table[slot & (slots - 1)] >= 0) ++slot;
      table[slot & (slots - 1)] = static_cast<int32_t>(i);
    }
  }

  const Entry* FindExact(const LookupRequest& request) const {
    const Key key = KeyOf(request);
    size_t slot = KeyHash(key, *request.shape);
    const size_t mask = table.size() - 1;
    for (; table[slot & mask] >= 0; ++slot) {
      const Entry& entry = entries[table[slot & mask]];
      if (KeyOf(entry) == key && SameShape(entry.shape, *request.shape)) {
        return &entry;
      }
    }
    return nullptr;
  }

  absl::optional<LookupResult> FindBucket(const LookupRequest& request) const;
  struct Candidate {
    int foreign;  // 0 on this hardware, else the smaller the nearer
    double distance;
    double shape_distance;
    const Entry* entry;
  };
  // The entries of the operator that may stand in, the nearest first;
  // `another_maker` gets the first that is of another maker's hardware.
  std::vector<Candidate> CandidatesFor(const LookupRequest& request,
                                       const Entry* refused,
                                       const Entry** another_maker) const;
  LookupResult FindNearest(const LookupRequest& request,
                           const Entry* refused) const;
};

// Where buckets overlap, one that was verified with today's kernel answers, and
// of several the one whose own shape is nearest.
absl::optional<LookupResult> TunedConfigStore::Impl::FindBucket(
    const LookupRequest& request) const {
  const auto found = by_operator.find(request.operator_name);
  if (found == by_operator.end()) return absl::nullopt;
  const Key wanted = KeyOf(request);
  const Entry* nearest = nullptr;
  std::pair<bool, double> order;  // unverified, distance
  for (const Entry* entry : found->second) {
    if (!entry->bucket.has_value() || !(KeyOf(*entry) == wanted) ||
        !entry->bucket->Contains(*request.shape) ||
        (!entry->tuned.ties() && !Accepts(request, entry->config))) {
      continue;
    }
    const std::pair<bool, double> to = {
        !IsVerified(request, *entry),
        *ShapeDistance(entry->shape, *request.shape)};
    if (nearest != nullptr && to >= order) continue;
    nearest = entry;
    order = to;
  }
  if (nearest == nullptr) return absl::nullopt;
  LookupResult result = Found(LookupSource::kBucket, *nearest, request);
  // An entry that ties stands for the default, and each shape has its own.
  if (nearest->tuned.ties()) result.config = nullptr;
  result.shape_distance = order.second;
  result.warning =
      absl::StrCat("using the ", nearest->tuned.ties() ? "default" : "config",
                   " that was verified for ", nearest->bucket->Text());
  return result;
}

std::vector<TunedConfigStore::Impl::Candidate>
TunedConfigStore::Impl::CandidatesFor(const LookupRequest& request,
                                      const Entry* refused,
                                      const Entry** another_maker) const {
  const Key wanted = KeyOf(request);
  std::vector<Candidate> candidates;
  const auto found = by_operator.find(request.operator_name);
  if (found != by_operator.end()) {
    for (const Entry* entry : found->second) {
      const absl::optional<double> shape_distance =
          ShapeDistance(entry->shape, *request.shape);
      // A config means something to its own backend alone, and what saves
      // energy need not save time.
      const Key key = KeyOf(*entry);
      if (entry == refused || entry->bucket.has_value() ||
          key.device_kind != wanted.device_kind ||
          key.backend != wanted.backend || key.objective != wanted.objective ||
          key.devices != wanted.devices || !shape_distance.has_value()) {
        continue;
      }
      const double threads =
          std::abs(std::log2(static_cast<double>(entry->tuned.threads()) /
                             std::max(1, request.threads)));
      const double mode = (key.cache_mode == wanted.cache_mode ? 0 : 1) +
                          (key.launch_mode == wanted.launch_mode ? 0 : 1);
      const int shared = SharedParts(entry->hardware_id, request.hardware_id);
      if (shared == 0) {
        if (*another_maker == nullptr) *another_maker = entry;
        continue;
      }
      const int foreign =
          entry->hardware_id == request.hardware_id ? 0 : 1000 - shared;
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
  return candidates;
}

LookupResult TunedConfigStore::Impl::FindNearest(const LookupRequest& request,
                                                 const Entry* refused) const {
  std::string warning;
  if (refused != nullptr) {
    warning =
        absl::StrCat("the config tuned for ", DescribeRequest(request), " (",
                     refused->tuned.config(), ") is not valid here; ");
  }
  const Entry* another_maker = nullptr;
  const std::vector<Candidate> candidates =
      CandidatesFor(request, refused, &another_maker);
  const Entry* beyond = nullptr;     // the first that is too far
  const Entry* no_better = nullptr;  // the first that need not beat the default
  for (const Candidate& candidate : candidates) {
    const Entry& entry = *candidate.entry;
    if (candidate.shape_distance > kFarthestShape ||
        candidate.distance > kFarthest) {
      if (beyond == nullptr) beyond = &entry;
      continue;
    }
    if (!Accepts(request, entry.config)) continue;
    if (!BeatsDefault(request, entry)) {
      if (no_better == nullptr) no_better = &entry;
      continue;
    }
    LookupResult result = Found(LookupSource::kNearest, entry, request);
    result.shape_distance = candidate.shape_distance;
    result.warning = absl::StrCat(
        warning, "using the config tuned for ", entry.tuned.shape(), ", ",
        entry.tuned.threads(), " threads, ",
        CacheModeName(entry.tuned.cache_mode()),
        entry.tuned.launch_mode() == request.launch_mode
            ? ""
            : absl::StrCat(", launched otherwise (",
                           LaunchModeName(entry.tuned.launch_mode()), ")"),
        candidate.foreign == 0
            ? ""
            : absl::StrCat(", on other hardware, ", entry.hardware_id),
        ", in place of one for ", DescribeRequest(request));
    return result;
  }
  LookupResult result;
  result.warning = absl::StrCat(
      warning, "no tuned config fits ", DescribeRequest(request),
      no_better != nullptr
          ? absl::StrCat(" (the nearest, of ", no_better->tuned.shape(),
                         ", is not expected to beat the default)")
      : beyond != nullptr ? absl::StrCat(" (the next one, of ",
                                         beyond->tuned.shape(), ", is too far)")
      : another_maker != nullptr
          ? absl::StrCat(" (those of ", another_maker->hardware_id,
                         " are of another maker's hardware)")
          : "",
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
  if (absl::optional<LookupResult> found = impl_->FindBucket(request)) {
    return *std::move(found);
  }
  return impl_->FindNearest(request, exact);
}

bool TunedConfigStore::Covers(const LookupRequest& request,
                              const Bucket& range) const {
  const auto found = impl_->by_operator.find(request.operator_name);
  if (found == impl_->by_operator.end()) return false;
  const Key wanted = KeyOf(request);
  return std::any_of(
      found->second.begin(), found->second.end(), [&](const Entry* entry) {
        return entry->bucket.has_value() && KeyOf(*entry) == wanted &&
               IsVerified(request, *entry) && entry->bucket->Contains(range);
      });
}

namespace {

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
  for (const Entry& entry : impl_->entries) {
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
