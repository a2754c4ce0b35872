#include "graph/memory/memory_command.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "graph/memory/buffers_csv.h"
#include "graph/memory/check.h"

namespace optrail::graph {
namespace {

Cell Bytes(int64_t bytes) {
  return Cell::Number(static_cast<double>(bytes),
                      absl::StrCat(FormatCount(bytes), " B"));
}

// How much larger than the lower bound the arena is.
double Fragmentation(int64_t arena, int64_t lower_bound) {
  if (lower_bound == 0) return 0;
  return static_cast<double>(arena - lower_bound) /
         static_cast<double>(lower_bound);
}

// Three decimals of a percent: the target is 0.1%.
Cell FragmentationCell(int64_t arena, int64_t lower_bound) {
  const double fraction = Fragmentation(arena, lower_bound);
  return Cell::Number(fraction, FormatPercent(fraction, 3));
}

}  // namespace

absl::StatusOr<ExitCode> RunMemoryPlan(const MemoryPlanCommand& command,
                                       std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const BuffersFile file,
                           ReadBuffersCsv(command.path));
  const auto plan = Plan(file.buffers, command.options);
  if (!plan.ok()) {
    return absl::Status(
        plan.status().code(),
        absl::StrCat(command.path, ": ", plan.status().message()));
  }
  if (!command.out.empty()) {
    OPTRAIL_RETURN_IF_ERROR(
        WriteOutput(command.out, WriteBuffersCsv(file.buffers, plan->offsets)));
  }
  const auto& capacity = command.options.capacity_bytes;
  Table table({{"buffers", Align::kRight},
               {"lower bound", Align::kRight, "lower_bound_bytes"},
               {"arena", Align::kRight, "arena_bytes"},
               {"capacity", Align::kRight, "capacity_bytes"},
               {"fragmentation", Align::kRight, "fragmentation"},
               {"proof", Align::kLeft, "proof"},
               {"time", Align::kRight, "processor_time_ns"},
               {"method", Align::kLeft, "method", Clip::kNever}});
  const double ns = absl::ToDoubleNanoseconds(plan->processor_time);
  table.AddRow({Cell::Integer(static_cast<int64_t>(file.buffers.size())),
                Bytes(plan->lower_bound_bytes), Bytes(plan->arena_bytes),
                capacity.has_value() ? Bytes(*capacity) : Cell::None(),
                FragmentationCell(plan->arena_bytes, plan->lower_bound_bytes),
                PlanProofName(plan->proof),
                Cell::Number(ns, FormatDurationNs(ns)), plan->method});
  out << table.Format(command.format, TerminalWidth());
  if (!capacity.has_value() || plan->arena_bytes <= *capacity) {
    return ExitCode::kOk;
  }
  return plan->proof == PlanProof::kInfeasible ? ExitCode::kCheckFailed
                                               : ExitCode::kNotEnoughData;
}

absl::StatusOr<ExitCode> RunMemoryCheck(const MemoryCheckCommand& command,
                                        std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const BuffersFile file,
                           ReadBuffersCsv(command.path));
  if (file.offsets.empty() && !file.buffers.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        command.path,
        ": no column \"offset\"; next: optrail memory plan --out=FILE"));
  }
  int64_t arena = 0;
  for (size_t i = 0; i < file.buffers.size(); ++i) {
    const int64_t size = file.buffers[i].size_bytes;
    if (file.offsets[i] > std::numeric_limits<int64_t>::max() - size) continue;
    arena = std::max(arena, file.offsets[i] + size);
  }
  const absl::Status status = CheckPlan(
      file.buffers, file.offsets,
      command.capacity_bytes.value_or(std::numeric_limits<int64_t>::max()),
      command.alignment_bytes);
  Table table({{"buffers", Align::kRight},
               {"arena", Align::kRight, "arena_bytes"},
               {"verdict", Align::kLeft, "verdict"},
               {"reason", Align::kLeft, "reason", Clip::kNever}});
  table.AddRow({Cell::Integer(static_cast<int64_t>(file.buffers.size())),
                Bytes(arena), status.ok() ? "valid" : "invalid",
                std::string(status.message())});
  out << table.Format(command.format, TerminalWidth());
  return status.ok() ? ExitCode::kOk : ExitCode::kCheckFailed;
}

}  // namespace optrail::graph
