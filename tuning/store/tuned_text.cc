#include "tuning/store/tuned_text.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/textproto.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/bucket.h"
#include "tuning/store/tuned_entry.h"

namespace optrail::tuning {
namespace {

constexpr char kHeader[] =
    "# Tuned configs; written by Optrail, reviewed like code.\n"
    "# proto-file: tuning/proto/store.proto\n"
    "# proto-message: optrail.proto.TunedConfigs\n\n";

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

// The id of a session or run if it begins with a UTC time, such as
// 20261120T081500Z; else "": it orders nothing.
absl::string_view WhenTold(absl::string_view id) {
  constexpr absl::string_view kTime = "00000000T000000Z-";
  if (id.size() < kTime.size()) return "";
  for (size_t i = 0; i < kTime.size(); ++i) {
    const bool fits =
        kTime[i] == '0' ? absl::ascii_isdigit(id[i]) : id[i] == kTime[i];
    if (!fits) return "";
  }
  return id;
}

// The day on which a session or run of this id began; "" if the id does not
// say.
std::string DayOf(absl::string_view id) {
  const absl::string_view time = WhenTold(id);
  if (time.empty()) return "";
  return absl::StrCat(time.substr(0, 4), "-", time.substr(4, 2), "-",
                      time.substr(6, 2));
}

// Fills in what stands for itself when absent (store.proto).
void Complete(proto::TunedConfig* tuned) {
  if (tuned->date().empty() && !tuned->ties()) {
    tuned->set_date(DayOf(tuned->session_id()));
  }
}
void Complete(proto::BestBackend* best) {
  if (best->date().empty()) best->set_date(DayOf(best->run_id()));
  if (best->entries_size() < 2 || best->entries(0).ratio() != 0) return;
  proto::BestBackend::Entry& first = *best->mutable_entries(0);
  first.set_ratio(1);
  first.set_ratio_low(1);
  first.set_ratio_high(1);
}

// Clears the ratios that Complete() may restore, each by itself: a run that
// ends after midnight has a date that is not its id's, and ratios that follow
// all the same.
void ClearRatios(proto::TunedConfig*) {}
void ClearRatios(proto::BestBackend* best) {
  // Few rounds have no interval.
  if (best->entries().empty() || best->entries(0).ratio_low() != 1) return;
  proto::BestBackend::Entry& first = *best->mutable_entries(0);
  first.clear_ratio();
  first.clear_ratio_low();
  first.clear_ratio_high();
}

// Checks what both kinds of entries have, puts the shape into its canonical
// text, and takes out what stands for itself when absent.
template <typename Entry>
absl::Status NormaliseKey(const TextProtoPlace& place, Entry* entry) {
  const absl::StatusOr<proto::Shape> shape = ParseShape(entry->shape());
  if (!shape.ok()) {
    return place.Child("shape").Error(shape.status().message());
  }
  entry->set_shape(CanonicalText(*shape));
  if (entry->threads() < 1) {
    return place.Child("threads").Error(
        absl::StrCat("threads is ", entry->threads(), ", expected at least 1"));
  }
  if (entry->cache_mode() == proto::CACHE_MODE_UNSPECIFIED) {
    return place.Child("cache_mode")
        .Error("cache_mode is missing, expected HOT or COLD");
  }
  if (entry->devices() < 0) {
    return place.Child("devices").Error(
        absl::StrCat("devices is ", entry->devices(), ", expected at least 1"));
  }
  if (entry->devices() == 1) entry->clear_devices();
  if (entry->objective() == "time") entry->clear_objective();
  return absl::OkStatus();
}

absl::Status NormaliseBackend(const TextProtoPlace& place,
                              proto::DeviceKind device, std::string* backend) {
  if (*backend == DeviceName(device)) backend->clear();
  if (backend->empty() || IsBackendName(*backend)) return absl::OkStatus();
  return place.Child("backend").Error(
      absl::StrCat("backend is \"", *backend,
                   "\", expected [a-z][a-z0-9_]*, neither best nor all"));
}

absl::StatusOr<std::string> CanonicalConfig(const TextProtoPlace& place,
                                            const std::string& text) {
  const absl::StatusOr<proto::Config> config = ParseConfig(text);
  if (!config.ok()) {
    return place.Child("config").Error(config.status().message());
  }
  return CanonicalText(*config);
}

// 0 where it is not known.
absl::Status CheckTime(const TextProtoPlace& place, const char* field,
                       double ns) {
  if (ns >= 0 && std::isfinite(ns)) return absl::OkStatus();
  return place.Child(field).Error(
      absl::StrCat(field, " is ", ns, ", expected a time, or none"));
}

absl::Status Normalise(const TextProtoPlace& place, proto::DeviceKind device,
                       proto::TunedConfig* tuned) {
  OPTRAIL_ASSIGN_OR_RETURN(*tuned->mutable_config(),
                           CanonicalConfig(place, tuned->config()));
  ShortenEntry(tuned);
  OPTRAIL_RETURN_IF_ERROR(NormaliseKey(place, tuned));
  OPTRAIL_RETURN_IF_ERROR(CheckTime(place, "time_ns", tuned->time_ns()));
  OPTRAIL_RETURN_IF_ERROR(
      CheckTime(place, "default_time_ns", tuned->default_time_ns()));
  if (!tuned->bucket().empty()) {
    const absl::StatusOr<Bucket> bucket = Bucket::Parse(tuned->bucket());
    if (!bucket.ok()) {
      return place.Child("bucket").Error(bucket.status().message());
    }
    if (!bucket->Contains(*ParseShape(tuned->shape()))) {
      return place.Child("bucket").Error(
          absl::StrCat("bucket is \"", tuned->bucket(),
                       "\", expected one with the shape ", tuned->shape()));
    }
    tuned->set_bucket(bucket->Text());
  }
  Complete(tuned);
  return NormaliseBackend(place, device, tuned->mutable_backend());
}

absl::Status Normalise(const TextProtoPlace& place, proto::DeviceKind device,
                       proto::BestBackend* best) {
  OPTRAIL_RETURN_IF_ERROR(NormaliseKey(place, best));
  if (best->entries().empty()) {
    return place.Error("best without entries, expected one per backend");
  }
  Complete(best);
  std::set<std::string> seen;
  for (int i = 0; i < best->entries_size(); ++i) {
    proto::BestBackend::Entry& entry = *best->mutable_entries(i);
    const TextProtoPlace at = place.Child("entries", i);
    OPTRAIL_RETURN_IF_ERROR(
        NormaliseBackend(at, device, entry.mutable_backend()));
    OPTRAIL_ASSIGN_OR_RETURN(*entry.mutable_config(),
                             CanonicalConfig(at, entry.config()));
    if (entry.id().empty()) {
      return at.Error("id is missing, expected that of the backend");
    }
    if (!(entry.time_ns() > 0) || !std::isfinite(entry.time_ns())) {
      return at.Error(absl::StrCat("time_ns is ", entry.time_ns(),
                                   ", expected more than 0"));
    }
    if (!seen.insert(entry.backend()).second) {
      return at.Error(
          absl::StrCat("backend \"", entry.backend(), "\" occurs twice"));
    }
    if (i > 0 && entry.time_ns() < best->entries(i - 1).time_ns()) {
      return at.Error(
          "an entry is faster than the one before, expected the "
          "best first");
    }
  }
  for (int i = 0; i < best->refused_size(); ++i) {
    proto::BestBackend::Refused& refused = *best->mutable_refused(i);
    const TextProtoPlace at = place.Child("refused", i);
    OPTRAIL_RETURN_IF_ERROR(
        NormaliseBackend(at, device, refused.mutable_backend()));
    if (!seen.insert(refused.backend()).second) {
      return at.Error(
          absl::StrCat("backend \"", refused.backend(), "\" occurs twice"));
    }
  }
  return absl::OkStatus();
}

// When what wrote it was measured. "" of entries that nothing of ours wrote.
absl::string_view SourceOf(const proto::TunedConfig& tuned) {
  return WhenTold(tuned.session_id());
}
absl::string_view SourceOf(const proto::BestBackend& best) {
  return WhenTold(best.run_id());
}

// Normalises entries of one kind. Two of a key are what a merge of two branches
// makes, each of which promoted into the file: the later session wins, and
// `mended` says so. If that cannot be told, somebody edited the file.
template <typename Entries>
absl::Status NormaliseAll(const TextProtoPlace& root, const char* field,
                          proto::DeviceKind device, Entries* entries,
                          std::vector<std::string>* mended) {
  std::map<EntryKey, int> first;  // its index
  std::set<int> superseded;
  for (int i = 0; i < entries->size(); ++i) {
    const TextProtoPlace place = root.Child(field, i);
    OPTRAIL_RETURN_IF_ERROR(Normalise(place, device, entries->Mutable(i)));
    const auto [it, inserted] = first.emplace(EntryKeyOf(entries->Get(i)), i);
    if (inserted) continue;
    const int before = it->second;
    const absl::string_view earlier = SourceOf(entries->Get(before));
    const absl::string_view later = SourceOf(entries->Get(i));
    const std::string twice =
        absl::StrCat("shape ", EntryText(entries->Get(i)),
                     " has two entries, the first in line ",
                     root.Child(field, before).line());
    const bool same = Same(entries->Get(before), entries->Get(i));
    if (!same && (earlier.empty() || later.empty() || earlier == later)) {
      return place.Error(absl::StrCat(
          twice, ", and nothing tells which is newer: remove one"));
    }
    const int loser = later > earlier ? before : i;
    superseded.insert(loser);
    it->second = loser == i ? before : i;
    mended->push_back(std::string(
        place
            .Error(absl::StrCat(
                twice, ", as merging two branches leaves them; ",
                same ? "they are the same"
                     : absl::StrCat("that of ", std::max(earlier, later),
                                    ", the later one, is used"),
                "; `optrail store mend` removes the other"))
            .message()));
  }
  for (auto it = superseded.rbegin(); it != superseded.rend(); ++it) {
    entries->DeleteSubrange(*it, 1);
  }
  return absl::OkStatus();
}

// Clears a part of `entry` if Complete() restores it.
template <typename Entry>
void ClearIfImplied(void (*clear)(Entry*), Entry* entry) {
  Entry shorter = *entry;
  clear(&shorter);
  Entry restored = shorter;
  Complete(&restored);
  // Other parts may be cleared by now.
  Entry complete = *entry;
  Complete(&complete);
  if (Same(restored, complete)) *entry = std::move(shorter);
}

// Sorts entries by their keys, and leaves out of each what Complete() restores.
template <typename Entries>
void PutInOrder(Entries* entries) {
  using Entry = typename Entries::value_type;
  for (Entry& entry : *entries) {
    ClearIfImplied<Entry>([](Entry* of) { of->clear_date(); }, &entry);
    ClearIfImplied<Entry>(ClearRatios, &entry);
  }
  std::sort(entries->begin(), entries->end(), [](const auto& a, const auto& b) {
    return EntryKeyOf(a) < EntryKeyOf(b);
  });
}

}  // namespace

absl::Status CheckPlace(const proto::TunedConfigs& configs,
                        absl::string_view op, absl::string_view path) {
  const absl::string_view stem =
      absl::StripSuffix(FileNameOf(path), ".textproto");
  if (configs.operator_name() == op && configs.hardware_id() == stem) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": the file is about operator \"", configs.operator_name(),
      "\" on \"", configs.hardware_id(), "\", expected \"", op, "\" on \"",
      stem, "\" as its path says"));
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

absl::StatusOr<proto::TunedConfigs> ParseTunedConfigs(
    absl::string_view text, absl::string_view path,
    std::vector<std::string>* mended) {
  std::vector<std::string> unsaid;
  if (mended == nullptr) mended = &unsaid;
  OPTRAIL_ASSIGN_OR_RETURN(auto file,
                           ParseTextProto<proto::TunedConfigs>(text, path));
  proto::TunedConfigs& configs = file.message;
  const absl::Status names = CheckNames(
      configs.operator_name(), configs.hardware_id(), configs.device_kind());
  if (!names.ok()) return file.root().Error(names.message());
  OPTRAIL_RETURN_IF_ERROR(NormaliseAll(file.root(), "tuned",
                                       configs.device_kind(),
                                       configs.mutable_tuned(), mended));
  OPTRAIL_RETURN_IF_ERROR(NormaliseAll(file.root(), "best",
                                       configs.device_kind(),
                                       configs.mutable_best(), mended));
  return std::move(configs);
}

std::string FormatTunedConfigs(proto::TunedConfigs configs) {
  PutInOrder(configs.mutable_tuned());
  PutInOrder(configs.mutable_best());
  return absl::StrCat(kHeader, PrintTextProto(configs));
}

}  // namespace optrail::tuning
