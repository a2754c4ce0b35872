#include "suites/worker/run_context.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/process/git.h"
#include "base/status_macros.h"
#include "base/text/textproto.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "ops/core/device_type.h"
#include "ops/device/toolchain.h"
#include "tracker/series/commit.h"

namespace optrail::suites {
namespace {

constexpr absl::Duration kCeilingsAge = absl::Hours(24 * 30);
constexpr absl::Duration kRecent = absl::Minutes(10);

std::string InWorkspace(const std::string& workspace, const std::string& path,
                        absl::string_view fallback) {
  // A history may be a URL.
  if (absl::StrContains(path, "://")) return path;
  return path.empty() ? JoinPath(workspace, fallback)
                      : JoinPath(WorkingDirectory(), path);
}

std::string CeilingsPath(const RunContext& context) {
  return JoinPath(
      context.state,
      absl::StrCat("ceilings-", context.hardware.id(), ".textproto"));
}

// Field by field: disturbances only ever lower a reading of a ceiling.
void KeepHigher(const proto::Ceilings& measured, proto::Ceilings* best) {
  // What was read from a smaller buffer came from a cache in part, and would
  // win for as long as it is kept.
  if (measured.memory_buffer_bytes() > best->memory_buffer_bytes()) {
    best->clear_memory_read_bytes_per_s_one_thread();
    best->clear_memory_read_bytes_per_s_all_threads();
    best->clear_memory_copy_bytes_per_s_one_thread();
    best->clear_memory_copy_bytes_per_s_all_threads();
  }
  const google::protobuf::Descriptor* type = measured.GetDescriptor();
  const google::protobuf::Reflection* fields = measured.GetReflection();
  for (int i = 0; i < type->field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = type->field(i);
    if (field->cpp_type() !=
            google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE ||
        !fields->HasField(measured, field)) {
      continue;
    }
    fields->SetDouble(best, field,
                      std::max(fields->GetDouble(measured, field),
                               fields->GetDouble(*best, field)));
  }
  // A disturbance makes a cache look smaller, too.
  if (measured.l2_bytes_seen() > best->l2_bytes_seen()) {
    best->set_l2_bytes_seen(measured.l2_bytes_seen());
  }
  if (measured.l3_bytes_seen() > best->l3_bytes_seen()) {
    best->set_l3_bytes_seen(measured.l3_bytes_seen());
  }
  if (measured.has_memory_buffer_bytes()) {
    best->set_memory_buffer_bytes(measured.memory_buffer_bytes());
  }
  // The age is that of the first reading, so that a machine that became slower
  // is believed in the end.
  if (best->measured_unix_ns() == 0) {
    best->set_measured_unix_ns(measured.measured_unix_ns());
  }
  best->set_last_measured_unix_ns(measured.measured_unix_ns());
}

std::string HardwarePath(const std::string& state,
                         const std::string& identity) {
  return JoinPath(
      state, absl::StrCat("hardware-", Fingerprint(identity), ".textproto"));
}

// Reads what an earlier call kept; without an id where there is nothing.
proto::Hardware ReadHardware(proto::DeviceKind kind, const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return proto::Hardware();
  auto kept = ParseTextProto<proto::Hardware>(*text, path);
  if (!kept.ok() || kept->message.device_kind() != kind) {
    return proto::Hardware();
  }
  return std::move(kept->message);
}

// Asking a driver takes longer than answering from the store what was tuned.
absl::StatusOr<proto::Hardware> KeptHardware(proto::DeviceKind kind,
                                             const std::string& state) {
  OPTRAIL_ASSIGN_OR_RETURN(const ops::DeviceType* type,
                           ops::FindDeviceType(kind));
  const std::string identity = type->Identity();
  if (identity.empty()) return type->Hardware();
  const std::string path = HardwarePath(state, identity);
  proto::Hardware kept = ReadHardware(kind, path);
  if (!kept.id().empty()) return kept;
  OPTRAIL_ASSIGN_OR_RETURN(proto::Hardware hardware, type->Hardware());
  // What cannot be kept is asked again.
  if (CreateDirectories(state).ok()) {
    (void)WriteFileAtomically(path, PrintTextProto(hardware));
  }
  return hardware;
}

RunContext PlacesOf(const std::string& history, const std::string& store) {
  RunContext context;
  context.workspace = WorkspaceDirectory();
  context.history = InWorkspace(context.workspace, history, ".optrail/history");
  context.store = InWorkspace(context.workspace, store, ".optrail/store");
  context.state = InWorkspace(context.workspace, "", ".optrail/state");
  return context;
}

// With all threads that its kernels may run on.
absl::StatusOr<std::unique_ptr<ops::Device>> MakeWholeDevice(
    const proto::Hardware& hardware) {
  OPTRAIL_ASSIGN_OR_RETURN(const ops::DeviceType* type,
                           ops::FindDeviceType(hardware.device_kind()));
  ops::DeviceOptions options;
  options.threads = type->max_threads(hardware);
  return type->Make(options);
}

}  // namespace

absl::StatusOr<RunContext> FindRunContext(proto::DeviceKind device,
                                          const std::string& history,
                                          const std::string& store) {
  RunContext context = PlacesOf(history, store);
  OPTRAIL_ASSIGN_OR_RETURN(context.hardware,
                           KeptHardware(device, context.state));
  context.toolchain = ops::BuildToolchain();
  context.commit = tracker::HeadCommit(context.workspace, &context.commit_note);
  return context;
}

absl::StatusOr<RunContext> PlanRunContext(proto::DeviceKind device,
                                          const std::string& history,
                                          const std::string& store,
                                          std::string* note) {
  RunContext context = PlacesOf(history, store);
  OPTRAIL_ASSIGN_OR_RETURN(const ops::DeviceType* type,
                           ops::FindDeviceType(device));
  if (const std::string identity = type->Identity(); !identity.empty()) {
    context.hardware =
        ReadHardware(device, HardwarePath(context.state, identity));
    if (!context.hardware.id().empty()) return context;
  }
  absl::StatusOr<proto::Hardware> here = type->Hardware();
  if (here.ok()) {
    context.hardware = *std::move(here);
    return context;
  }
  context.hardware = type->Declared();
  if (context.hardware.id().empty()) return here.status();
  *note = absl::StrCat(here.status().message(), "; planned for ",
                       context.hardware.id());
  return context;
}

proto::Ceilings KeptCeilings(const RunContext& context) {
  const std::string path = CeilingsPath(context);
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return proto::Ceilings();
  const auto kept = ParseTextProto<proto::Ceilings>(*text, path);
  // Older versions read memory from what may lie in a cache, and the highest
  // reading would win for ever.
  const bool comparable =
      kept.ok() && (kept->message.has_memory_buffer_bytes() ||
                    !kept->message.has_l1_read_bytes_per_s());
  const bool valid =
      comparable && Clock::Real()->WallNs() - kept->message.measured_unix_ns() <
                        absl::ToInt64Nanoseconds(kCeilingsAge);
  return valid ? kept->message : proto::Ceilings();
}

proto::Ceilings CeilingsOf(const RunContext& context) {
  proto::Ceilings best = KeptCeilings(context);
  const absl::StatusOr<std::unique_ptr<ops::Device>> device =
      MakeWholeDevice(context.hardware);
  const absl::StatusOr<proto::Ceilings> ceilings =
      device.ok() ? (*device)->MeasureCeilings()
                  : absl::StatusOr<proto::Ceilings>(device.status());
  if (!ceilings.ok()) {
    std::cerr << "note: no roofline: " << ceilings.status().message() << "\n";
    return best;
  }
  KeepHigher(*ceilings, &best);
  absl::Status kept = CreateDirectories(context.state);
  if (kept.ok())
    kept = WriteFileAtomically(CeilingsPath(context), PrintTextProto(best));
  if (!kept.ok()) std::cerr << "note: " << kept.message() << "\n";
  return best;
}

proto::Ceilings RecentCeilings(const RunContext& context) {
  proto::Ceilings kept = KeptCeilings(context);
  const absl::Duration age =
      absl::Nanoseconds(Clock::Real()->WallNs() - kept.last_measured_unix_ns());
  // A clock that was set back makes an age negative.
  const bool recent = age >= absl::ZeroDuration() && age < kRecent;
  return recent ? kept : CeilingsOf(context);
}

}  // namespace optrail::suites
