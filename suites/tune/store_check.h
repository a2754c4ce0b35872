#ifndef OPTRAIL_SUITES_TUNE_STORE_CHECK_H_
#define OPTRAIL_SUITES_TUNE_STORE_CHECK_H_

// Tuned configs whose kernel has changed since they were proven: which these
// are, whether they still beat the default, and new ones for those that do not.
// `optrail store check` is RunStoreCheck().
//
// A kernel's id covers its code, its compiler (NVRTC on a GPU) and a library's
// version. A change of the driver alone changes no id; --all checks everything.
// An entry that was tuned within some numerics classes (--numerics) is verified
// and tuned again within them. Where the default had won, it holds while the
// kernel is the same; with another one a search tells.

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/text/table.h"
#include "suites/tune/tune_driver.h"
#include "suites/worker/run_context.h"

namespace optrail::suites {

struct StoreCheckCommand {
  RunContext context;
  // How configs are measured; its budget is not looked at.
  TuneDriverOptions tune;
  std::string op_regex;  // matches the whole name; empty: every operator
  // Entries whose kernel has not changed, too, and those of the build: who did
  // not tune them need not look after them.
  bool all = false;
  bool dry_run = false;  // list, and measure nothing
  bool retune = true;    // those that fail, in the time that is left
  absl::Duration time = absl::Minutes(2);  // of everything
  OutputFormat format = OutputFormat::kTable;
};

// Entries for the context's hardware, time being their objective. Exit code 1:
// an entry failed and was not tuned again; 3: the time was too short for some.
// Without an entry to list, `notes` says how many are proven, or that there is
// none at all; that is no failure.
absl::StatusOr<int> RunStoreCheck(const StoreCheckCommand& command,
                                  std::ostream& out, std::ostream& notes);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_STORE_CHECK_H_
