#ifndef OPTRAIL_DIAGNOSIS_SEARCH_AGAIN_H_
#define OPTRAIL_DIAGNOSIS_SEARCH_AGAIN_H_

// Runs the searches of TryRemedies: of operators by workers, of commands by
// their template. Neither the history nor the store keeps them.
//
//   SearchTools tools{context, tune, limits};
//   TryRemedies(read_session, [&](const SearchAgain& search) {
//     return RunSearchAgain(search, tools);
//   }, &findings);
//
// FailedPrecondition where a gain would not be the remedy's alone: on other
// hardware, and where the kernel or the program has changed since.

#include "absl/status/statusor.h"
#include "diagnosis/try_remedies.h"
#include "suites/tune/tune_driver.h"
#include "suites/worker/run_context.h"
#include "tuning/command/tune_command.h"
#include "tuning/proto/session.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::diagnosis {

struct SearchTools {
  suites::RunContext context;
  // How operators are measured; budget, strategy and space are the search's.
  suites::TuneDriverOptions tune;
  // They bound each run of a command.
  tuning::CommandLimits limits;
};

absl::StatusOr<proto::Session> RunSearchAgain(const SearchAgain& search,
                                              const SearchTools& tools);

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_SEARCH_AGAIN_H_
