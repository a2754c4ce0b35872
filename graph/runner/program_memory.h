#ifndef OPTRAIL_GRAPH_RUNNER_PROGRAM_MEMORY_H_
#define OPTRAIL_GRAPH_RUNNER_PROGRAM_MEMORY_H_

// ProgramMemory holds the storages of a program on a machine: those of the
// arena where the memory plan puts them, and one allocation for constants,
// inputs and what is kept. Constants are written.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<ProgramMemory> memory,
//                            ProgramMemory::Of(machine, graph, program));
//   OPTRAIL_ASSIGN_OR_RETURN(const Array y, memory->Read(program.outputs[0]));
//
// Machine, graph and program must outlive it, and stay as they are. Errors:
// ResourceExhausted where it does not fit, with the bytes. Not thread-safe.

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/array.h"
#include "graph/memory/plan.h"
#include "graph/runner/machine.h"
#include "graph/runner/program.h"
#include "ops/core/device.h"

namespace optrail::graph {

class ProgramMemory {
 public:
  static absl::StatusOr<std::unique_ptr<ProgramMemory>> Of(
      Machine& machine, const Graph& graph, const Program& program);

  // Returns the address of the view's first element.
  char* Address(const View& view) const;

  // Returns the first element of `view` where the host can read it: in place,
  // or in `copy`, which gets the view if it is dense and else its whole
  // storage.
  absl::StatusOr<const char*> OnHost(const View& view,
                                     std::vector<char>* copy) const;

  absl::StatusOr<Array> Read(const View& view) const;

  const MemoryPlan& plan() const { return plan_; }
  const std::vector<MemoryBuffer>& arena_buffers() const {
    return buffers_of_arena_;
  }
  int64_t constant_bytes() const { return constant_bytes_; }
  int64_t unplanned_bytes() const { return unplanned_bytes_; }

 private:
  ProgramMemory(Machine& machine, const Graph& graph, const Program& program)
      : machine_(machine), graph_(graph), program_(program) {}

  absl::Status PlanArena();
  absl::StatusOr<char*> NewBuffer(int64_t bytes);
  absl::Status Allocate();
  absl::Status ReadsFit(int64_t machine) const;

  Machine& machine_;
  const Graph& graph_;
  const Program& program_;
  MemoryPlan plan_;
  std::map<int, size_t> arena_place_;  // storage -> buffer of the plan
  std::vector<MemoryBuffer> buffers_of_arena_;
  std::vector<std::unique_ptr<ops::Buffer>> buffers_;
  std::vector<char*> base_;  // of each storage
  int64_t constant_bytes_ = 0;
  int64_t unplanned_bytes_ = 0;
};

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_RUNNER_PROGRAM_MEMORY_H_
