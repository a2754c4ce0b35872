#include "graph/runner/program_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process/machine_memory.h"
#include "base/status_macros.h"
#include "graph/runner/arena.h"

namespace optrail::graph {

absl::StatusOr<std::unique_ptr<ProgramMemory>> ProgramMemory::Of(
    Machine& machine, const Graph& graph, const Program& program) {
  std::unique_ptr<ProgramMemory> memory(
      new ProgramMemory(machine, graph, program));
  OPTRAIL_RETURN_IF_ERROR(memory->PlanArena());
  OPTRAIL_RETURN_IF_ERROR(memory->Allocate());
  return memory;
}

// Steps that run before the calls read and write nothing in the arena.
absl::Status ProgramMemory::PlanArena() {
  const ArenaBuffers arena = FindArenaBuffers(program_);
  arena_place_ = arena.place;
  buffers_of_arena_ = arena.buffers;
  unplanned_bytes_ = arena.unplanned_bytes;
  MemoryPlanOptions options;
  options.alignment_bytes = machine_.storage_bytes();
  options.time_limit = absl::Seconds(1);
  OPTRAIL_ASSIGN_OR_RETURN(plan_, Plan(buffers_of_arena_, options));
  return absl::OkStatus();
}

absl::StatusOr<char*> ProgramMemory::NewBuffer(int64_t bytes) {
  OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<ops::Buffer> buffer,
                           machine_.device().Allocate(std::max<int64_t>(
                               bytes, machine_.storage_bytes())));
  buffers_.push_back(std::move(buffer));
  return static_cast<char*>(buffers_.back()->data());
}

// One allocation for the arena and one for everything else.
absl::Status ProgramMemory::Allocate() {
  const int64_t alignment = machine_.storage_bytes();
  const auto aligned = [&](int64_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
  };
  std::vector<int64_t> offsets(program_.storages.size(), 0);
  int64_t rest = 0;
  for (size_t i = 0; i < program_.storages.size(); ++i) {
    const Storage& storage = program_.storages[i];
    if (storage.kind == Storage::Kind::kArena) continue;
    offsets[i] = rest;
    rest += aligned(storage.bytes);
  }
  constant_bytes_ = rest;
  OPTRAIL_ASSIGN_OR_RETURN(const int64_t machine, machine_.MemoryBytes());
  if (rest > machine / 8 * 7 - plan_.arena_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("constants take ", rest, " bytes and the arena ",
                     plan_.arena_bytes, "; the machine has ", machine));
  }
  OPTRAIL_RETURN_IF_ERROR(ReadsFit(MachineMemoryBytes()));
  OPTRAIL_ASSIGN_OR_RETURN(char* const arena, NewBuffer(plan_.arena_bytes));
  OPTRAIL_ASSIGN_OR_RETURN(char* const constants, NewBuffer(rest));
  base_.resize(program_.storages.size(), nullptr);
  for (size_t i = 0; i < program_.storages.size(); ++i) {
    const Storage& storage = program_.storages[i];
    if (storage.kind == Storage::Kind::kArena) {
      const auto place = arena_place_.find(static_cast<int>(i));
      if (place != arena_place_.end()) {
        base_[i] = arena + plan_.offsets[place->second];
      }
      continue;
    }
    base_[i] = constants + offsets[i];
    if (storage.kind != Storage::Kind::kConstant) continue;
    const std::string bytes =
        storage.value < 0
            ? std::string(storage.bytes, '\0')
            : ConstantBytes(graph_.values[storage.value].type,
                            *graph_.values[storage.value].constant);
    OPTRAIL_RETURN_IF_ERROR(
        machine_.Write(base_[i], bytes.data(), bytes.size()));
  }
  return absl::OkStatus();
}

// Views may repeat what they hold: outputs, and what the reference reads, are
// dense copies of bytes and doubles.
absl::Status ProgramMemory::ReadsFit(int64_t machine) const {
  const auto fits = [&](const std::vector<View>& views,
                        absl::string_view what) {
    double bytes = 0;
    for (const View& view : views) {
      bytes += static_cast<double>(view.type.bytes()) +
               8 * static_cast<double>(Elements(view.type.dims));
    }
    if (bytes <= static_cast<double>(machine) / 8 * 7) {
      return absl::OkStatus();
    }
    return absl::ResourceExhaustedError(
        absl::StrCat(what, " would take ", bytes,
                     " bytes to copy; the machine has ", machine));
  };
  for (const Step& step : program_.steps) {
    if (step.kernel != "reference") continue;
    OPTRAIL_RETURN_IF_ERROR(fits(
        step.operands, absl::StrCat("operands of node \"", step.name, "\"")));
  }
  return fits(program_.outputs, "the outputs");
}

char* ProgramMemory::Address(const View& view) const {
  return base_[view.storage] + view.offset * ElementBytes(view.type.type);
}

// Returns the first element of `view` where the host can read it: in place,
// or in `copy`, which gets the view if it is dense and else its whole
// storage.
absl::StatusOr<const char*> ProgramMemory::OnHost(
    const View& view, std::vector<char>* copy) const {
  char* const address = Address(view);
  if (const char* const in_place = machine_.HostAddress(address)) {
    return in_place;
  }
  const bool dense = IsDense(view);
  char* const from = dense ? address : base_[view.storage];
  const int64_t bytes =
      dense ? view.type.bytes() : program_.storages[view.storage].bytes;
  if (copy->size() < static_cast<size_t>(bytes)) copy->resize(bytes);
  OPTRAIL_RETURN_IF_ERROR(machine_.Read(copy->data(), from, bytes));
  return copy->data() + (address - from);
}

absl::StatusOr<Array> ProgramMemory::Read(const View& view) const {
  const int64_t size = ElementBytes(view.type.type);
  std::string bytes(view.type.bytes(), '\0');
  std::vector<char> copy;
  OPTRAIL_ASSIGN_OR_RETURN(const char* const from, OnHost(view, &copy));
  ForEachElement(view.type.dims, {view.strides},
                 [&](int64_t i, const std::vector<int64_t>& at) {
                   std::memcpy(bytes.data() + i * size, from + at[0] * size,
                               size);
                 });
  return Array::Decode(view.type, bytes);
}

}  // namespace optrail::graph
