// The functions of optrail.h over stores, threads and plans.

#include "lib/optrail.h"

#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "lib/c_api.h"
#include "lib/observer.h"
#include "lib/operands.h"
#include "lib/plan.h"
#include "lib/store.h"
#include "lib/threads.h"
#include "ops/core/device_type.h"
#include "ops/core/registry.h"
#include "tuning/proto/canonical.h"

namespace optrail::lib {
namespace {

const Store* Of(const optrail_store* store) {
  return reinterpret_cast<const Store*>(store);
}
const Plan* Of(const optrail_plan* plan) {
  return reinterpret_cast<const Plan*>(plan);
}

// One text for each kind of device, for the life of the process.
absl::StatusOr<const char*> HardwareId(const char* device) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const proto::DeviceKind kind,
      tuning::ParseDevice(device == nullptr ? "cpu" : device));
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Hardware hardware,
                           ops::HardwareOf(kind));
  static auto& mutex = *new std::mutex();
  static auto& ids = *new std::map<int, std::string>();
  const std::lock_guard<std::mutex> lock(mutex);
  return ids.try_emplace(kind, hardware.id()).first->second.c_str();
}

absl::Status CopyText(const std::string& from, char* text, size_t size) {
  OPTRAIL_RETURN_IF_ERROR(NotNull(text, "text"));
  if (from.size() >= size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "text has ", size, " bytes, and ", from, " needs ", from.size() + 1));
  }
  std::memcpy(text, from.c_str(), from.size() + 1);
  return absl::OkStatus();
}

}  // namespace
}  // namespace optrail::lib

using optrail::lib::Guarded;
using optrail::lib::NotNull;
using optrail::lib::Observer;
using optrail::lib::Of;
using optrail::lib::ReadStruct;
using optrail::lib::WriteStruct;

extern "C" {

int32_t optrail_version(void) { return OPTRAIL_VERSION; }

optrail_status optrail_hardware_id(const char* device, const char** id) {
  return Guarded([&]() -> absl::Status {
    OPTRAIL_RETURN_IF_ERROR(NotNull(id, "id"));
    OPTRAIL_ASSIGN_OR_RETURN(*id, optrail::lib::HardwareId(device));
    return absl::OkStatus();
  });
}

const char* optrail_operators(void) {
  static const std::string& names = *new std::string([] {
    std::string joined;
    for (const auto* entry : optrail::ops::Registry::Get().List()) {
      absl::StrAppend(&joined, joined.empty() ? "" : " ", entry->op->name());
    }
    return joined;
  }());
  return names.c_str();
}

optrail_status optrail_shape_text(const char* op, const int64_t* dims,
                                  size_t dim_count, const char* attributes,
                                  const char* types, char* text, size_t size) {
  return Guarded([&]() -> absl::Status {
    OPTRAIL_RETURN_IF_ERROR(NotNull(op, "op"));
    OPTRAIL_RETURN_IF_ERROR(NotNull(types, "types"));
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::string shape,
        optrail::lib::ShapeText(op, dims, dim_count, attributes, types));
    return optrail::lib::CopyText(shape, text, size);
  });
}

optrail_status optrail_infer_shape(const char* op,
                                   const optrail_operand* inputs,
                                   size_t input_count, const char* attributes,
                                   char* text, size_t size) {
  return Guarded([&]() -> absl::Status {
    OPTRAIL_RETURN_IF_ERROR(NotNull(op, "op"));
    OPTRAIL_RETURN_IF_ERROR(NotNull(inputs, "inputs"));
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::string shape,
        optrail::lib::InferShape(op, inputs, input_count, attributes));
    return optrail::lib::CopyText(shape, text, size);
  });
}

optrail_status optrail_shape_operand(const char* op, const char* shape,
                                     size_t index, optrail_operand* operand,
                                     size_t* count) {
  return Guarded([&]() -> absl::Status {
    OPTRAIL_RETURN_IF_ERROR(NotNull(op, "op"));
    OPTRAIL_RETURN_IF_ERROR(NotNull(shape, "shape"));
    OPTRAIL_ASSIGN_OR_RETURN(const auto* operands,
                             optrail::lib::OperandsOfText(op, shape));
    if (count != nullptr) *count = operands->size();
    if (index >= operands->size()) {
      return optrail::lib::NoSuchOperand(absl::StrCat(op, " ", shape), index,
                                         operands->size());
    }
    return WriteStruct((*operands)[index].View(), "operand", operand);
  });
}

optrail_status optrail_observe(const char* folder, uint32_t flags) {
  return Guarded([&]() -> absl::Status {
    if (folder == nullptr) return Observer::Counts();
    return Observer::Start(folder, flags);
  });
}

optrail_status optrail_store_open(const char* path, optrail_store** store) {
  return Guarded([&]() -> absl::Status {
    OPTRAIL_RETURN_IF_ERROR(NotNull(store, "store"));
    Observer::StartFromEnvironment();
    OPTRAIL_ASSIGN_OR_RETURN(
        auto opened, optrail::lib::Store::Open(path == nullptr ? "" : path));
    *store = reinterpret_cast<optrail_store*>(opened.release());
    return absl::OkStatus();
  });
}

void optrail_store_close(optrail_store* store) { delete Of(store); }

const char* optrail_store_digest(const optrail_store* store) {
  return store == nullptr ? "" : Of(store)->digest().c_str();
}

optrail_status optrail_lookup(const optrail_store* store,
                              const optrail_problem* problem,
                              optrail_choice* choice) {
  return Guarded([&]() -> absl::Status {
    OPTRAIL_RETURN_IF_ERROR(NotNull(store, "store"));
    optrail_problem read;
    OPTRAIL_RETURN_IF_ERROR(ReadStruct(problem, "problem", &read));
    OPTRAIL_ASSIGN_OR_RETURN(const optrail_choice* found,
                             Of(store)->Find(read));
    return WriteStruct(*found, "choice", choice);
  });
}

optrail_status optrail_plan_create(const optrail_store* store,
                                   const optrail_problem* problem,
                                   const optrail_plan_options* options,
                                   optrail_plan** plan) {
  return Guarded([&]() -> absl::Status {
    OPTRAIL_RETURN_IF_ERROR(NotNull(plan, "plan"));
    Observer::StartFromEnvironment();
    optrail_problem read;
    OPTRAIL_RETURN_IF_ERROR(ReadStruct(problem, "problem", &read));
    optrail_plan_options read_options = OPTRAIL_PLAN_OPTIONS_INIT;
    if (options != nullptr) {
      OPTRAIL_RETURN_IF_ERROR(ReadStruct(options, "options", &read_options));
    }
    OPTRAIL_ASSIGN_OR_RETURN(
        auto made, optrail::lib::Plan::Create(Of(store), read, read_options));
    *plan = reinterpret_cast<optrail_plan*>(made.release());
    return absl::OkStatus();
  });
}

void optrail_plan_destroy(optrail_plan* plan) { delete Of(plan); }

optrail_status optrail_plan_choice(const optrail_plan* plan,
                                   optrail_choice* choice) {
  return Guarded([&]() -> absl::Status {
    OPTRAIL_RETURN_IF_ERROR(NotNull(plan, "plan"));
    return WriteStruct(Of(plan)->choice().View(), "choice", choice);
  });
}

size_t optrail_plan_operand_count(const optrail_plan* plan) {
  return plan == nullptr ? 0 : Of(plan)->operand_count();
}

optrail_status optrail_plan_operand(const optrail_plan* plan, size_t index,
                                    optrail_operand* operand) {
  return Guarded([&]() -> absl::Status {
    OPTRAIL_RETURN_IF_ERROR(NotNull(plan, "plan"));
    OPTRAIL_ASSIGN_OR_RETURN(const optrail_operand found,
                             Of(plan)->operand(index));
    return WriteStruct(found, "operand", operand);
  });
}

size_t optrail_plan_workspace_bytes(const optrail_plan* plan) {
  return plan == nullptr ? 0 : Of(plan)->workspace_bytes();
}

size_t optrail_plan_packed_bytes(const optrail_plan* plan) {
  return plan == nullptr ? 0 : Of(plan)->packed_bytes();
}

optrail_status optrail_threads_create(int32_t count,
                                      optrail_threads** threads) {
  return Guarded([&]() -> absl::Status {
    OPTRAIL_RETURN_IF_ERROR(NotNull(threads, "threads"));
    OPTRAIL_ASSIGN_OR_RETURN(auto made, optrail::lib::Threads::Create(count));
    *threads = reinterpret_cast<optrail_threads*>(made.release());
    return absl::OkStatus();
  });
}

optrail_status optrail_threads_adopt(optrail_parallel_for parallel_for,
                                     void* context, int32_t count,
                                     optrail_threads** threads) {
  return Guarded([&]() -> absl::Status {
    OPTRAIL_RETURN_IF_ERROR(NotNull(threads, "threads"));
    OPTRAIL_ASSIGN_OR_RETURN(
        auto made, optrail::lib::Threads::Adopt(parallel_for, context, count));
    *threads = reinterpret_cast<optrail_threads*>(made.release());
    return absl::OkStatus();
  });
}

void optrail_threads_destroy(optrail_threads* threads) {
  delete reinterpret_cast<optrail::lib::Threads*>(threads);
}

optrail_status optrail_pack(const optrail_plan* plan, const optrail_call* call,
                            void* packed) {
  return Guarded([&]() -> absl::Status {
    OPTRAIL_RETURN_IF_ERROR(NotNull(plan, "plan"));
    optrail_call read;
    OPTRAIL_RETURN_IF_ERROR(ReadStruct(call, "call", &read));
    return Of(plan)->Pack(read, packed);
  });
}

optrail_status optrail_run(const optrail_plan* plan, const optrail_call* call) {
  return Guarded([&]() -> absl::Status {
    OPTRAIL_RETURN_IF_ERROR(NotNull(plan, "plan"));
    optrail_call read;
    OPTRAIL_RETURN_IF_ERROR(ReadStruct(call, "call", &read));
    return Of(plan)->Run(read);
  });
}

}  // extern "C"
