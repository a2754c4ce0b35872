#include "tuning/proto/measurement_settings_text.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/text/units.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace optrail::tuning {
namespace {

using google::protobuf::FieldDescriptor;
using proto::MeasurementSettings;

// Not how often, by which build, and with what patience it was measured.
bool CanMoveReadings(const FieldDescriptor& field) {
  switch (field.number()) {
    case MeasurementSettings::kProcessesFieldNumber:
    case MeasurementSettings::kAttemptsPerProcessFieldNumber:
    case MeasurementSettings::kRaceRatioFieldNumber:
    case MeasurementSettings::kConfigDeadlineNsFieldNumber:
    case MeasurementSettings::kOpenDeadlineNsFieldNumber:
    case MeasurementSettings::kMaxConfigBytesFieldNumber:
    case MeasurementSettings::kConfigsPerWorkerFieldNumber:
    case MeasurementSettings::kBinaryFingerprintFieldNumber:
      return false;
    default:
      return true;
  }
}

bool Knows(const MeasurementSettings& settings, const FieldDescriptor& field) {
  return settings.GetReflection()->HasField(settings, &field);
}

// "max_run_delay_ns": "max run delay"; beside it, "max_run_delay_fraction":
// "max run delay share".
std::string NameOf(const FieldDescriptor& field) {
  absl::string_view name = field.name();
  if (absl::ConsumeSuffix(&name, "_fraction")) {
    const bool ambiguous = field.containing_type()->FindFieldByName(
                               absl::StrCat(name, "_ns")) != nullptr;
    return absl::StrCat(absl::StrReplaceAll(name, {{"_", " "}}),
                        ambiguous ? " share" : "");
  }
  for (const absl::string_view unit : {"_ns", "_bytes"}) {
    if (absl::ConsumeSuffix(&name, unit)) break;
  }
  return absl::StrReplaceAll(name, {{"_", " "}});
}

std::string ValueOf(const MeasurementSettings& settings,
                    const FieldDescriptor& field) {
  const google::protobuf::Reflection& values = *settings.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64: {
      const int64_t value = values.GetInt64(settings, &field);
      if (absl::EndsWith(field.name(), "_ns")) {
        return FormatDurationNs(static_cast<double>(value));
      }
      if (absl::EndsWith(field.name(), "_bytes")) {
        return FormatBytes(static_cast<double>(value));
      }
      return absl::StrCat(value);
    }
    case FieldDescriptor::CPPTYPE_INT32:
      return absl::StrCat(values.GetInt32(settings, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const double value = values.GetDouble(settings, &field);
      return absl::EndsWith(field.name(), "_fraction")
                 ? FormatShortPercent(value, 4)
                 : absl::StrFormat("%.4g", value);
    }
    default:
      return values.GetString(settings, &field);
  }
}

// Compares fields that both know, exactly; ValueOf rounds.
bool SameValue(const MeasurementSettings& a, const MeasurementSettings& b,
               const FieldDescriptor& field) {
  const google::protobuf::Reflection& values = *a.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return values.GetInt64(a, &field) == values.GetInt64(b, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return values.GetDouble(a, &field) == values.GetDouble(b, &field);
    default:
      return ValueOf(a, field) == ValueOf(b, field);
  }
}

std::vector<const FieldDescriptor*> Fields() {
  const google::protobuf::Descriptor& type = *MeasurementSettings::descriptor();
  std::vector<const FieldDescriptor*> fields;
  for (int i = 0; i < type.field_count(); ++i) fields.push_back(type.field(i));
  return fields;
}

}  // namespace

std::vector<std::string> SettingsTexts(const MeasurementSettings& settings) {
  std::vector<std::string> texts;
  for (const FieldDescriptor* field : Fields()) {
    if (!Knows(settings, *field)) continue;
    texts.push_back(
        absl::StrCat(NameOf(*field), " ", ValueOf(settings, *field)));
  }
  return texts;
}

std::string DescribeSettingsChange(const MeasurementSettings& before,
                                   const MeasurementSettings& after) {
  std::vector<std::string> changes;
  for (const FieldDescriptor* field : Fields()) {
    if (!CanMoveReadings(*field) || !Knows(before, *field) ||
        !Knows(after, *field) || SameValue(before, after, *field)) {
      continue;
    }
    changes.push_back(absl::StrCat(NameOf(*field), " ", ValueOf(before, *field),
                                   " -> ", ValueOf(after, *field)));
  }
  return absl::StrJoin(changes, "; ");
}

MeasurementSettings CommonSettings(const MeasurementSettings& a,
                                   const MeasurementSettings& b) {
  MeasurementSettings common = a;
  for (const FieldDescriptor* field : Fields()) {
    if (!Knows(a, *field)) continue;
    if (!Knows(b, *field) || !SameValue(a, b, *field)) {
      common.GetReflection()->ClearField(&common, field);
    }
  }
  return common;
}

std::string SettingsKey(const MeasurementSettings& settings) {
  MeasurementSettings kept = settings;
  kept.clear_processes();
  kept.clear_binary_fingerprint();
  return kept.SerializeAsString();
}

bool IsAnotherBuild(const MeasurementSettings& before,
                    const MeasurementSettings& after) {
  return !before.binary_fingerprint().empty() &&
         !after.binary_fingerprint().empty() &&
         before.binary_fingerprint() != after.binary_fingerprint();
}

}  // namespace optrail::tuning
