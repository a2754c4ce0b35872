#include "tuning/store/store_entries.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "tuning/proto/canonical.h"

namespace optrail::tuning {
namespace {

using Entry = StoreEntries::Entry;

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
  if (validity == StoreEntries::kUnknown) {
    validity = (*request.is_valid)(entry.config) ? StoreEntries::kValid
                                                 : StoreEntries::kInvalid;
    entry.validity.store(validity, std::memory_order_relaxed);
  }
  return validity == StoreEntries::kValid;
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

}  // namespace

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

void StoreEntries::Add(const std::string& operator_name,
                       proto::DeviceKind device_kind,
                       const std::string& hardware_id,
                       const proto::TunedConfig& tuned, bool from_overlay) {
  Entry& entry = entries_.emplace_back();
  entry.operator_name = operator_name;
  entry.device_kind = device_kind;
  entry.hardware_id = hardware_id;
  entry.tuned = tuned;
  entry.from_overlay = from_overlay;
  // All were parsed when their file was read.
  entry.shape = *ParseShape(tuned.shape());
  entry.config = *ParseConfig(tuned.config());
  if (!tuned.bucket().empty()) entry.bucket = *Bucket::Parse(tuned.bucket());
  by_operator_[operator_name].push_back(&entry);
}

void StoreEntries::Index() {
  size_t slots = 16;
  while (slots < 2 * entries_.size()) slots *= 2;
  table_.assign(slots, -1);
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& e = entries_[i];
    size_t slot = KeyHash(KeyOf(e), e.shape);
    while (table_[slot & (slots - 1)] >= 0) ++slot;
    table_[slot & (slots - 1)] = static_cast<int32_t>(i);
  }
}

const std::vector<const StoreEntries::Entry*>& StoreEntries::EntriesOf(
    absl::string_view op) const {
  static const auto* const kNone = new std::vector<const Entry*>;
  const auto found = by_operator_.find(op);
  return found == by_operator_.end() ? *kNone : found->second;
}

const StoreEntries::Entry* StoreEntries::FindExact(
    const LookupRequest& request) const {
  const Key key = KeyOf(request);
  size_t slot = KeyHash(key, *request.shape);
  const size_t mask = table_.size() - 1;
  for (; table_[slot & mask] >= 0; ++slot) {
    const Entry& entry = entries_[table_[slot & mask]];
    if (KeyOf(entry) == key && SameShape(entry.shape, *request.shape)) {
      return &entry;
    }
  }
  return nullptr;
}

// Where buckets overlap, one that was verified with today's kernel answers, and
// of several the one whose own shape is nearest.
absl::optional<LookupResult> StoreEntries::FindBucket(
    const LookupRequest& request) const {
  const Key wanted = KeyOf(request);
  const Entry* nearest = nullptr;
  std::pair<bool, double> order;  // unverified, distance
  for (const Entry* entry : EntriesOf(request.operator_name)) {
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

std::vector<StoreEntries::Candidate> StoreEntries::CandidatesFor(
    const LookupRequest& request, const Entry* refused,
    const Entry** another_maker) const {
  const Key wanted = KeyOf(request);
  std::vector<Candidate> candidates;
  for (const Entry* entry : EntriesOf(request.operator_name)) {
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
  // Entries are sorted, so a stable sort breaks ties by name.
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return std::tie(a.foreign, a.distance) <
                            std::tie(b.foreign, b.distance);
                   });
  return candidates;
}

LookupResult StoreEntries::FindNearest(const LookupRequest& request,
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

LookupResult StoreEntries::Lookup(const LookupRequest& request) const {
  OPTRAIL_CHECK(request.shape != nullptr) << "a lookup needs a shape";
  const Entry* exact = FindExact(request);
  if (exact != nullptr && AcceptsExact(request, *exact)) {
    return Found(LookupSource::kExact, *exact, request);
  }
  if (absl::optional<LookupResult> found = FindBucket(request)) {
    return *std::move(found);
  }
  return FindNearest(request, exact);
}

bool StoreEntries::Covers(const LookupRequest& request,
                          const Bucket& range) const {
  const Key wanted = KeyOf(request);
  return absl::c_any_of(
      EntriesOf(request.operator_name), [&](const Entry* entry) {
        return entry->bucket.has_value() && KeyOf(*entry) == wanted &&
               IsVerified(request, *entry) && entry->bucket->Contains(range);
      });
}

}  // namespace optrail::tuning
