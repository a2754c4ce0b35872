#ifndef OPTRAIL_TRACKER_HISTORY_RECORD_KINDS_H_
#define OPTRAIL_TRACKER_HISTORY_RECORD_KINDS_H_

// How each kind of record is named, checked, written and read. For the files of
// this folder: everybody else has history.h.

#include <cmath>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "base/text/proto_utf8.h"
#include "tracker/history/history_files.h"
#include "tracker/history/record.h"
#include "tracker/history/record_store.h"
#include "tracker/proto/diagnosis.pb.h"
#include "tracker/proto/run.pb.h"
#include "tracker/proto/tombstone.pb.h"
#include "tracker/proto/triage.pb.h"
#include "tuning/proto/session.pb.h"

namespace optrail::tracker {

// The differences between the kinds of record.
struct RunKind {
  using Message = proto::Run;
  static constexpr absl::string_view kFolder = "runs";
  static constexpr absl::string_view kName = "run";
  static const std::string& Id(const Message& run) { return run.run_id(); }
  static absl::Status Validate(const Message& run) { return ValidateRun(run); }
};

struct SessionKind {
  using Message = proto::Session;
  static constexpr absl::string_view kFolder = "sessions";
  static constexpr absl::string_view kName = "session";
  static const std::string& Id(const Message& session) {
    return session.session_id();
  }
  static absl::Status Validate(const Message& session) {
    return ValidateSession(session);
  }
};

struct TriageKind {
  using Message = proto::TriageRecord;
  static constexpr absl::string_view kFolder = "triage";
  static constexpr absl::string_view kName = "triage record";
  static const std::string& Id(const Message& record) {
    return record.record_id();
  }
  static absl::Status Validate(const Message& record) {
    if (std::isfinite(record.effect())) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "effect is ", record.effect(), ", expected a finite number"));
  }
};
static_assert(int{proto::TriageRecord::kChecksumFieldNumber} ==
              int{proto::Run::kChecksumFieldNumber});

struct DiagnosisKind {
  using Message = proto::Diagnosis;
  static constexpr absl::string_view kFolder = "diagnoses";
  static constexpr absl::string_view kName = "diagnosis";
  static const std::string& Id(const Message& diagnosis) {
    return diagnosis.diagnosis_id();
  }
  static absl::Status Validate(const Message& diagnosis) {
    for (const proto::DiagnosisAdvice& advice : diagnosis.advice()) {
      if (!std::isfinite(advice.predicted_gain()) ||
          !std::isfinite(advice.realised_gain())) {
        return absl::InvalidArgumentError(
            absl::StrCat("a gain of its advice '", advice.class_name(),
                         "' is not a finite number"));
      }
    }
    return absl::OkStatus();
  }
};
static_assert(int{proto::Diagnosis::kChecksumFieldNumber} ==
              int{proto::Run::kChecksumFieldNumber});

struct TombstonesKind {
  using Message = proto::Tombstones;
  static constexpr absl::string_view kFolder = "tombstones";
  static constexpr absl::string_view kName = "tombstones";
  static const std::string& Id(const Message& tombstones) {
    return tombstones.tombstones_id();
  }
  static absl::Status Validate(const Message& tombstones) {
    for (const proto::Tombstone& tombstone : tombstones.tombstones()) {
      if (!IsRecordId(tombstone.run_id())) {
        return absl::InvalidArgumentError(
            absl::StrCat("run_id '", tombstone.run_id(),
                         "', expected the form 20261120T090807Z-1a2b3c4d5e6f"));
      }
    }
    return absl::OkStatus();
  }
};
static_assert(int{proto::Tombstones::kChecksumFieldNumber} ==
              int{proto::Run::kChecksumFieldNumber});

// `bad` with the path and the reason of a failed read.
inline BadFile Named(BadFile bad, const std::string& path,
                     const absl::Status& status) {
  bad.path = path;
  bad.reason = std::string(status.message());
  return bad;
}

// What there is to say of bytes that are refused.
inline Damage DamageOf(absl::string_view content) {
  switch (RecordDamageOf(content)) {
    case RecordDamage::kCutOff:
      return Damage::kCutOff;
    case RecordDamage::kChanged:
      return Damage::kChanged;
    case RecordDamage::kNewerFormat:
      return Damage::kNewerFormat;
  }
  return Damage::kUnreadable;
}

// A record must be where its id says: then no id is taken twice.
template <typename Kind>
absl::Status CheckPlace(const std::string& dir, const std::string& path,
                        const typename Kind::Message& message, BadFile* bad) {
  const std::string& id = Kind::Id(message);
  bad->damage = Damage::kImpossibleValue;
  const absl::StatusOr<std::string> place = PlaceOf(dir, Kind::kFolder, id);
  if (!place.ok()) {
    return absl::DataLossError(absl::StrCat("its ", place.status().message()));
  }
  if (*place == path) return absl::OkStatus();
  bad->damage = Damage::kMisplaced;
  bad->place = *place;
  return absl::DataLossError(absl::StrCat("it holds ", Kind::kName, " ", id,
                                          ", whose place is ", *place));
}

// What can't be true is so anywhere: it must not be put in its place.
template <typename Kind>
absl::Status CheckDecoded(const std::string& dir, const std::string& path,
                          const typename Kind::Message& message, BadFile* bad) {
  const absl::Status placed = CheckPlace<Kind>(dir, path, message, bad);
  if (!placed.ok() && bad->damage != Damage::kMisplaced) return placed;
  const absl::Status valid = Kind::Validate(message);
  if (valid.ok()) return placed;
  bad->damage = Damage::kImpossibleValue;
  bad->place.clear();
  return valid;
}

// Reads the record at `path`, which a list of the history's records or PlaceOf
// gave. Where it fails, `bad` says which damage; its `path` and `reason` are
// the caller's to fill.
template <typename Kind>
absl::Status ReadWhole(const RecordStore& store, const std::string& path,
                       typename Kind::Message* message, BadFile* bad = nullptr,
                       std::string* bytes = nullptr) {
  BadFile unused;
  if (bad == nullptr) bad = &unused;
  bad->damage = Damage::kUnreadable;
  OPTRAIL_ASSIGN_OR_RETURN(std::string content, store.Read(path));
  bad->damage = DamageOf(content);
  OPTRAIL_RETURN_IF_ERROR(DecodeRecord(content, message));
  if (bytes != nullptr) *bytes = std::move(content);
  return CheckDecoded<Kind>(store.dir(), path, *message, bad);
}

// The bytes of the record's file, read back: nothing is acknowledged that no
// reader takes. Text that is no UTF-8 is replaced, since its record is worth
// more than one byte of a name.
template <typename Kind>
absl::StatusOr<std::string> EncodeWhole(const std::string& dir,
                                        const typename Kind::Message& message) {
  if (HasInvalidUtf8(message)) {
    typename Kind::Message valid = message;
    ReplaceInvalidUtf8In(&valid);
    return EncodeWhole<Kind>(dir, valid);
  }
  if (message.checksum() != 0) {
    typename Kind::Message unsealed = message;
    unsealed.clear_checksum();
    return EncodeWhole<Kind>(dir, unsealed);
  }
  const auto naming = [&](const absl::Status& status) {
    return absl::Status(
        status.code(),
        absl::StrCat(Kind::kName, " ", Kind::Id(message).substr(0, 80), ": ",
                     status.message()));
  };
  OPTRAIL_ASSIGN_OR_RETURN(const std::string place,
                           PlaceOf(dir, Kind::kFolder, Kind::Id(message)));
  if (const absl::Status valid = Kind::Validate(message); !valid.ok()) {
    return naming(valid);
  }
  if (message.ByteSizeLong() >= kMostRecordBytes) {
    return naming(absl::ResourceExhaustedError(
        absl::StrCat("it takes ", message.ByteSizeLong(), " bytes, expected ",
                     "less than ", kMostRecordBytes)));
  }
  std::string bytes = EncodeRecord(message);
  typename Kind::Message back;
  BadFile unused;
  absl::Status read = DecodeRecord(bytes, &back);
  if (read.ok()) read = CheckDecoded<Kind>(dir, place, back, &unused);
  if (!read.ok()) return naming(read);
  return bytes;
}

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_RECORD_KINDS_H_
