#ifndef OPTRAIL_TRACKER_CONVERGENCE_CONVERGENCE_COMMAND_H_
#define OPTRAIL_TRACKER_CONVERGENCE_CONVERGENCE_COMMAND_H_

// `optrail convergence` as a function, for the command line to fill from flags.
//
//   ConvergenceCommand options;
//   options.common.history = ".optrail/history";
//   options.fail_on = {"does_not_converge"};
//   absl::StatusOr<int> exit_code = RunConvergence(options, std::cout);

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tracker/command/command_support.h"
#include "tracker/convergence/findings.h"
#include "tracker/history/history.h"

namespace optrail::tracker {

struct ConvergenceCommand {
  CommonOptions common;
  std::string hardware_id;  // sessions on this hardware only
  std::string filter;       // RE2 on tasks ("matmul/cpu/m=512,...")
  std::string policy;       // file whose fail_on_finding joins `fail_on`
  // Findings that make the exit code 1, by name (findings.h); "all" stands for
  // every one.
  std::vector<std::string> fail_on;
  // Applies remedies and fills in what they bring; empty: nothing is tried.
  std::function<absl::Status(const History&, std::vector<Finding>&)> try_them;
};

// Prints the findings over all sessions of the history: what, where, the
// evidence, the remedy with what it is expected to bring, and brought. Exit
// code 1 if one of `fail_on` is among them, 3 if there is no session to judge.
// InvalidArgument for an unknown name, with the policy file if it is from
// there.
absl::StatusOr<int> RunConvergence(const ConvergenceCommand& options,
                                   std::ostream& out);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_CONVERGENCE_CONVERGENCE_COMMAND_H_
