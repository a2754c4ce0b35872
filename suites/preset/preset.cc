#include "suites/preset/preset.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file/file.h"
#include "base/process/git.h"
#include "base/status_macros.h"
#include "base/text/textproto.h"
#include "base/text/utf8.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "ops/core/registry.h"
#include "suites/workload/workload.h"

namespace optrail::suites {
namespace {

using google::protobuf::FieldDescriptor;

// Sums of decimal fractions come out a little beside 1.
constexpr double kRounding = 1e-9;

// "file:line": a column says nothing of a field that has a line of its own.
std::string PlaceText(absl::string_view filename, const TextProtoPlace& place) {
  return absl::StrCat(filename, ":", place.line());
}

// The values of a field, as texts; none where the preset leaves it out.
std::vector<std::string> ValuesOf(const proto::Preset& preset,
                                  const FieldDescriptor* field) {
  const google::protobuf::Reflection* fields = preset.GetReflection();
  std::vector<std::string> values;
  if (field->is_repeated()) {
    for (int i = 0; i < fields->FieldSize(preset, field); ++i) {
      values.push_back(fields->GetRepeatedString(preset, field, i));
    }
    return values;
  }
  if (!fields->HasField(preset, field)) return values;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      values.push_back(fields->GetString(preset, field));
      break;
    case FieldDescriptor::CPPTYPE_INT32:
      values.push_back(absl::StrCat(fields->GetInt32(preset, field)));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      values.push_back(absl::StrCat(fields->GetInt64(preset, field)));
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      values.push_back(absl::StrCat(fields->GetUInt64(preset, field)));
      break;
    default:
      values.push_back(absl::StrCat(fields->GetDouble(preset, field)));
  }
  return values;
}

bool IsFlag(const FieldDescriptor* field) {
  return field->name() != "name" && field->name() != "doc" &&
         field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE;
}

absl::Status AddSettings(const TextProtoPlace& root, Preset* preset) {
  const google::protobuf::Descriptor* type = proto::Preset::descriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* const field = type->field(i);
    if (!IsFlag(field)) continue;
    const std::vector<std::string> values = ValuesOf(preset->proto, field);
    if (values.empty()) continue;
    const TextProtoPlace place =
        root.Child(field->name(), field->is_repeated() ? 0 : -1);
    // An empty value would look like a default, which leaving it out gives.
    for (const std::string& value : values) {
      if (!value.empty()) continue;
      return place.Error(
          absl::StrCat(field->name(),
                       " is empty: expected a value; leave the field out to "
                       "have the flag's default"));
    }
    preset->settings.push_back({field->name(), absl::StrJoin(values, ","),
                                PlaceText(preset->path, place)});
  }
  return absl::OkStatus();
}

absl::Status AddShares(const TextProtoPlace& root, Preset* preset) {
  const ops::Registry& registry = ops::Registry::Get();
  double sum = 0;
  for (int i = 0; i < preset->proto.share_size(); ++i) {
    const proto::BudgetShare& share = preset->proto.share(i);
    const TextProtoPlace place = root.Child("share", i);
    if (registry.Find(share.operator_name()) == nullptr) {
      return place.Child("operator_name")
          .Error(registry.UnknownOperator(share.operator_name()).message());
    }
    if (!(share.fraction() > 0) || share.fraction() > 1) {
      return place.Child("fraction")
          .Error(absl::StrCat(
              "fraction is ", share.fraction(),
              ", expected a part of the total above 0, at most 1"));
    }
    if (!preset->shares.emplace(share.operator_name(), share.fraction())
             .second) {
      return place.Error(
          absl::StrCat(share.operator_name(),
                       " has two shares; expected one, of all its tasks"));
    }
    sum += share.fraction();
    if (sum > 1 + kRounding) {
      return place.Error(absl::StrCat(
          "the shares up to ", share.operator_name(), "'s ", share.fraction(),
          " sum to ", sum, ", expected at most 1; next: make one smaller"));
    }
    if (i == 0) preset->shares_place = PlaceText(preset->path, place);
  }
  return absl::OkStatus();
}

// A path in the file starts where the file lies, so that both move together.
void ResolveWorkload(Preset* preset) {
  const std::string& workload = preset->proto.workload();
  if (!IsPath(workload) || workload[0] == '/') return;
  preset->proto.set_workload(JoinPath(
      JoinPath(WorkingDirectory(), DirectoryOf(preset->path)), workload));
}

}  // namespace

absl::StatusOr<Preset> ParsePreset(absl::string_view text,
                                   absl::string_view filename) {
  OPTRAIL_ASSIGN_OR_RETURN(const auto parsed,
                           ParseTextProto<proto::Preset>(text, filename));
  Preset preset;
  preset.proto = parsed.message;
  preset.path = std::string(filename);
  const TextProtoPlace root = parsed.root();
  const std::string& name = preset.proto.name();
  if (name.empty()) return root.Error("a preset needs a name");
  if (!std::all_of(name.begin(), name.end(), [](char c) {
        return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_';
      })) {
    return root.Child("name").Error(absl::StrCat(
        "name is \"", EscapeForTerminal(name), "\", expected [a-z0-9_]+"));
  }
  ResolveWorkload(&preset);
  OPTRAIL_RETURN_IF_ERROR(AddSettings(root, &preset));
  if (preset.proto.has_workload()) {
    const auto workload = FindWorkload(preset.proto.workload());
    if (!workload.ok()) {
      return root.Child("workload").Error(workload.status().message());
    }
  }
  OPTRAIL_RETURN_IF_ERROR(AddShares(root, &preset));
  return preset;
}

absl::StatusOr<Preset> FindPreset(const std::string& name_or_path) {
  OPTRAIL_ASSIGN_OR_RETURN(const NamedFile file,
                           FindFile(EmbeddedPresets(), "preset", name_or_path));
  return ParsePreset(file.text, file.path);
}

}  // namespace optrail::suites
