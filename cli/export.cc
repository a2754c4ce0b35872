// `optrail export`: kernels for programs that launch them without a library of
// ours.

#include "suites/export/export.h"

#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "cli/compile_for.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "ops/core/device_type.h"
#include "suites/command/command_flags.h"

namespace optrail::cli {
namespace {

absl::StatusOr<int> Export() {
  suites::ExportCommand command;
  command.out = UserPath(absl::GetFlag(FLAGS_out));
  if (command.out.empty()) {
    return absl::InvalidArgumentError(
        "flag --out is missing; next: --out=FOLDER");
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      const suites::TaskSelection selection,
      suites::SelectionFromFlags("", absl::GetFlag(FLAGS_workload)));
  if (selection.device != proto::CUDA) {
    return absl::InvalidArgumentError(
        "--device: expected cuda: cubins are of GPUs");
  }
  OPTRAIL_ASSIGN_OR_RETURN(const ops::DeviceType* type,
                           ops::FindDeviceType(selection.device));
  OPTRAIL_ASSIGN_OR_RETURN(command.context, ContextToCompileFor(*type));
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(command.context.state));
  OPTRAIL_ASSIGN_OR_RETURN(
      command.tasks, suites::SelectTasks(selection, command.context.hardware,
                                         &command.left_out));
  command.format = absl::GetFlag(FLAGS_format);
  return suites::RunExport(command, std::cout, std::cerr);
}

}  // namespace

suites::Command ExportCommand() {
  suites::Command command;
  command.name = "export";
  command.summary = "Writes cubins and how to launch them.";
  command.details = HelpText("export");
  command.flags = suites::SelectionFlags();
  for (const char* flag : {"hw", "out", "format", "history", "store"}) {
    command.flags.push_back(flag);
  }
  command.defaults = {{"device", "cuda"}};
  command.meanings = {{"out", "Folder for cubins and manifest.json."}};
  command.run = [](const std::vector<std::string>&) { return Export(); };
  return command;
}

}  // namespace optrail::cli
