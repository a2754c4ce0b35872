#ifndef OPTRAIL_SUITES_EXPORT_EXPORT_H_
#define OPTRAIL_SUITES_EXPORT_EXPORT_H_

// Kernels of tasks on CUDA as cubins and a manifest: a program launches them
// with the driver alone. `optrail export` is this function.
//
//   ExportCommand command;
//   command.tasks = tasks;
//   command.context = context;  // whose hardware and store answer
//   command.out = "kernels";    // a folder
//   return RunExport(command, std::cout, std::cerr);
//
// docs/reference/exported_kernels.md has the format.

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/text/table.h"
#include "suites/worker/run_context.h"
#include "suites/workload/tasks.h"

namespace optrail::suites {

// The manifest's name in its folder.
inline constexpr char kManifestName[] = "manifest.json";

struct ExportCommand {
  std::vector<TaskEntry> tasks;
  std::vector<LeftOutTask> left_out;           // the manifest refuses them, too
  RunContext context;                          // state holds the compile cache
  std::string out;                             // folder; created if missing
  OutputFormat format = OutputFormat::kTable;  // kJson: the manifest
};

// The exit code: kCheckFailed where a task could not be exported, which the
// manifest lists with its reason. Nothing is written where that is so of all
// of them: then their first error.
absl::StatusOr<int> RunExport(const ExportCommand& command, std::ostream& out,
                              std::ostream& notes);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_EXPORT_EXPORT_H_
