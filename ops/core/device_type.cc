#include "ops/core/device_type.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/process/cpus.h"
#include "base/status_macros.h"
#include "base/text/closest.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

// By number: a kind may have one that context.proto does not name.
using Types = std::map<int, std::unique_ptr<DeviceType>>;

Types& AllTypes() {
  // Never destroyed, as the registry of operators.
  static Types* const types = new Types;
  return *types;
}

std::string WhatThereIs() {
  return absl::StrCat(
      "this binary has: ",
      absl::StrJoin(ListDeviceTypes(), ", ",
                    [](std::string* out, const DeviceType* type) {
                      absl::StrAppend(out, type->name());
                    }));
}

}  // namespace

std::string DeviceType::name() const { return tuning::DeviceName(kind()); }

absl::Status DeviceType::CheckOptions(const DeviceOptions& options,
                                      const proto::Hardware& hardware) const {
  const int most = max_threads(hardware);
  if (options.threads >= 1 && options.threads <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(options.threads, " threads: expected 1",
                   most > 1 ? absl::StrCat(" to ", most) : "", " on ", name()));
}

std::vector<int> DeviceType::SpareCores(const DeviceOptions&) const {
  std::vector<int> cores = UsableCpus();
  cores.erase(cores.begin());
  return cores;
}

absl::StatusOr<const DeviceType*> FindDeviceType(proto::DeviceKind kind) {
  const auto found = AllTypes().find(kind);
  if (found != AllTypes().end()) return found->second.get();
  return absl::UnimplementedError(
      absl::StrCat("unsupported here: no device of kind ",
                   tuning::DeviceName(kind), "; ", WhatThereIs()));
}

absl::StatusOr<const DeviceType*> FindDeviceTypeNamed(absl::string_view name) {
  for (const auto& [kind, type] : AllTypes()) {
    if (type->name() == name || tuning::DeviceName(type->kind()) == name) {
      return type.get();
    }
  }
  std::vector<std::string> names;
  for (const auto& [kind, type] : AllTypes()) names.push_back(type->name());
  // A GPU is one letter from a CPU.
  return absl::NotFoundError(
      absl::StrCat("no device \"", name, "\"; ", WhatThereIs(),
                   DidYouMean(name == "gpu" ? "cuda" : name, names)));
}

std::vector<const DeviceType*> ListDeviceTypes() {
  std::vector<const DeviceType*> list;
  for (const auto& [kind, type] : AllTypes()) list.push_back(type.get());
  return list;
}

void RegisterDeviceType(std::unique_ptr<DeviceType> type) {
  const int kind = type->kind();
  OPTRAIL_CHECK(AllTypes().emplace(kind, std::move(type)).second)
      << "two devices are registered for kind "
      << tuning::DeviceName(static_cast<proto::DeviceKind>(kind));
}

absl::StatusOr<proto::Hardware> HardwareOf(proto::DeviceKind kind) {
  OPTRAIL_ASSIGN_OR_RETURN(const DeviceType* type, FindDeviceType(kind));
  return type->Hardware();
}

absl::StatusOr<std::unique_ptr<Device>> MakeDevice(
    proto::DeviceKind kind, const DeviceOptions& options) {
  OPTRAIL_ASSIGN_OR_RETURN(const DeviceType* type, FindDeviceType(kind));
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Hardware hardware, type->Hardware());
  OPTRAIL_RETURN_IF_ERROR(type->CheckOptions(options, hardware));
  return type->Make(options);
}

}  // namespace optrail::ops
