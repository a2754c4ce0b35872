#ifndef OPTRAIL_GRAPH_MEMORY_MEMORY_COMMAND_H_
#define OPTRAIL_GRAPH_MEMORY_MEMORY_COMMAND_H_

// The command `optrail memory` without its flags.
//
//   MemoryPlanCommand command;
//   command.path = "model.csv";
//   OPTRAIL_ASSIGN_OR_RETURN(const ExitCode code,
//                            RunMemoryPlan(command, std::cout));

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "base/exit_code.h"
#include "base/text/table.h"
#include "graph/memory/plan.h"

namespace optrail::graph {

struct MemoryPlanCommand {
  std::string path;  // CSV as in buffers_csv.h
  MemoryPlanOptions options;
  std::string out;  // where the placement is written as CSV; "": nowhere
  OutputFormat format = OutputFormat::kTable;
};

// Prints one row: what was found, how, and how far it is from the lower bound.
// kCheckFailed where a capacity was given that no placement meets,
// kNotEnoughData where none was found in the time. The placement is written
// all the same.
absl::StatusOr<ExitCode> RunMemoryPlan(const MemoryPlanCommand& command,
                                       std::ostream& out);

struct MemoryCheckCommand {
  std::string path;  // with a column "offset"
  std::optional<int64_t> capacity_bytes;
  int64_t alignment_bytes = 1;
  OutputFormat format = OutputFormat::kTable;
};

// kCheckFailed, and what is wrong, where the placement is invalid.
absl::StatusOr<ExitCode> RunMemoryCheck(const MemoryCheckCommand& command,
                                        std::ostream& out);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_MEMORY_MEMORY_COMMAND_H_
