#include "tuning/lookup.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/file/read_file_or_link.h"
#include "base/status_macros.h"
#include "tuning/proto/canonical.h"

namespace optrail::tuning {
namespace {

const proto::KnobValue* Knob(const LookupResult& answer,
                             absl::string_view name) {
  if (answer.config == nullptr) return nullptr;
  for (const proto::KnobValue& value : answer.config->set()) {
    if (value.knob() == name) return &value;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::vector<TunedFile>> ReadTunedFiles(
    const std::vector<std::string>& paths) {
  std::vector<TunedFile> read;
  for (const std::string& path : paths) {
    if (!FileExists(path)) {
      return absl::NotFoundError(absl::StrCat(
          path, ": there is no such file or folder of tuned configs"));
    }
    std::vector<std::string> files = {path};
    if (ListDirectory(path).ok()) {
      OPTRAIL_ASSIGN_OR_RETURN(files, ListRecursively(path, ".textproto"));
    }
    for (const std::string& file : files) {
      OPTRAIL_ASSIGN_OR_RETURN(std::string text, ReadFileOrLink(file));
      read.push_back({file, std::move(text)});
    }
  }
  return read;
}

absl::StatusOr<TunedConfigStore> LoadTunedFiles(
    const std::vector<std::string>& paths) {
  StoreOptions options;
  OPTRAIL_ASSIGN_OR_RETURN(options.checked_in, ReadTunedFiles(paths));
  return TunedConfigStore::Load(options);
}

absl::StatusOr<Lookup> Lookup::Load(const std::vector<std::string>& paths) {
  OPTRAIL_ASSIGN_OR_RETURN(TunedConfigStore store, LoadTunedFiles(paths));
  return Lookup(std::move(store));
}

absl::StatusOr<Lookup::Prepared> Lookup::Prepare(const Question& question,
                                                 absl::string_view shape) {
  OPTRAIL_ASSIGN_OR_RETURN(proto::Shape parsed, ParseShape(shape));
  if (question.operator_name.empty()) {
    return absl::InvalidArgumentError(
        "operator_name is empty, expected the operator's name");
  }
  if (question.threads < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads is ", question.threads, ", expected at least 1"));
  }
  if (question.devices < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("devices is ", question.devices, ", expected at least 1"));
  }
  if (!question.backend.empty() && !IsBackendName(question.backend)) {
    return absl::InvalidArgumentError(
        absl::StrCat("backend is \"", question.backend,
                     "\", expected [a-z][a-z0-9_]*, neither best nor all"));
  }
  auto data = std::make_shared<Prepared::Data>();
  data->question = question;
  data->shape = std::move(parsed);
  LookupRequest& request = data->request;
  request.operator_name = data->question.operator_name;
  request.shape = &data->shape;
  request.threads = question.threads;
  request.hardware_id = data->question.hardware_id;
  request.kernel_id = data->question.kernel_id;
  request.objective = data->question.objective;
  request.devices = question.devices;
  OPTRAIL_ASSIGN_OR_RETURN(request.device_kind, ParseDevice(question.device));
  OPTRAIL_ASSIGN_OR_RETURN(request.cache_mode,
                           ParseCacheMode(question.cache_mode));
  if (!question.launch_mode.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(request.launch_mode,
                             ParseLaunchMode(question.launch_mode));
  }
  // The device kind's own backend may be named, too.
  if (question.backend != DeviceName(request.device_kind)) {
    request.backend = data->question.backend;
  }
  return Prepared(std::move(data));
}

int64_t Lookup::Answer::Int(absl::string_view knob, int64_t otherwise) const {
  const proto::KnobValue* value = Knob(*this, knob);
  return value != nullptr && value->has_int_() ? value->int_() : otherwise;
}

bool Lookup::Answer::Bool(absl::string_view knob, bool otherwise) const {
  const proto::KnobValue* value = Knob(*this, knob);
  return value != nullptr && value->has_bool_() ? value->bool_() : otherwise;
}

absl::string_view Lookup::Answer::Variant(absl::string_view knob,
                                          absl::string_view otherwise) const {
  const proto::KnobValue* value = Knob(*this, knob);
  return value != nullptr && value->has_variant()
             ? absl::string_view(value->variant())
             : otherwise;
}

Lookup::Answer Lookup::Find(const Prepared& question) const {
  return {store_.Lookup(question.data_->request)};
}

Lookup::Answer Lookup::Find(const Prepared& question,
                            const ConfigPredicate& is_valid) const {
  LookupRequest request = question.data_->request;
  request.is_valid = &is_valid;
  return {store_.Lookup(request)};
}

Lookup::Answer Lookup::Find(const Prepared& question,
                            const ConfigPredicate& is_valid,
                            const ConfigPredicate& beats_default) const {
  LookupRequest request = question.data_->request;
  request.is_valid = &is_valid;
  request.beats_default = &beats_default;
  return {store_.Lookup(request)};
}

}  // namespace optrail::tuning
