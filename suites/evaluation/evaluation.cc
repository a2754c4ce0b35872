#include "suites/evaluation/evaluation.h"

#include <iostream>

#include "absl/flags/parse.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "suites/worker/worker.h"

namespace optrail::suites {

int EvaluationMain(int argc, char** argv,
                   absl::FunctionRef<absl::StatusOr<ExitCode>()> run) {
  if (IsWorker(argc, argv)) return RunWorker(argc, argv);
  absl::ParseCommandLine(argc, argv);
  const absl::StatusOr<ExitCode> code = run();
  if (code.ok()) return ToInt(*code);
  std::cerr << code.status().message() << "\n";
  return ToInt(ExitCode::kBadInput);
}

absl::StatusOr<RunContext> ContextIn(const std::string& folder,
                                     proto::DeviceKind device) {
  OPTRAIL_ASSIGN_OR_RETURN(RunContext context,
                           FindRunContext(device, JoinPath(folder, "history"),
                                          JoinPath(folder, "store")));
  context.state = JoinPath(folder, "state");
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(context.state));
  return context;
}

}  // namespace optrail::suites
