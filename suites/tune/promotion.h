#ifndef OPTRAIL_SUITES_TUNE_PROMOTION_H_
#define OPTRAIL_SUITES_TUNE_PROMOTION_H_

// Promotion by an end-to-end proof. A config that wins alone may lose where it
// is used: it fills a cache, or takes memory bandwidth from the next call. So a
// whole workload is run with the checked-in configs and with those of the
// overlay, interleaved call by call in the workload's order; what makes it
// slower is not promoted. `optrail store promote --workload=W` is
// RunPromotion().
//
// All calls of a layer work on the same operands, which a model's do not.

#include <functional>
#include <ostream>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/text/table.h"
#include "suites/graph/paired_timing.h"
#include "suites/worker/run_context.h"
#include "suites/workload/tasks.h"
#include "tuning/store/operator_folders.h"

namespace optrail::suites {

// A workload with new configs must not be slower, by its interval, than with
// the old ones; and a loss of more than this must be excluded.
inline constexpr double kMostLoss = .01;

enum class PromotionState { kWins, kLoses, kUndecided };

struct PromotionVerdict {
  PromotionState state = PromotionState::kUndecided;
  PairedTimes
      times;         // old over new: of all that win together, else of it alone
  int together = 1;  // with how many others, itself included
};

// Judges `count` candidates: first all together; if that does not win, each
// alone, then together those that do. `measure` runs the workload with the old
// configs and with the new ones of the candidates that are marked, interleaved,
// for so long at most.
using MeasurePromotion = std::function<absl::StatusOr<PairedTimes>(
    const std::vector<bool>& is_new, absl::Duration most)>;
absl::StatusOr<std::vector<PromotionVerdict>> JudgePromotion(
    int count, absl::Duration time, const MeasurePromotion& measure);

struct PromotionCommand {
  RunContext context;
  TaskSelection selection;  // with a workload
  tuning::OperatorFolders folders;
  absl::Duration time = absl::Minutes(2);  // of all measurements
  bool dry_run = false;                    // judge, and move nothing
  OutputFormat format = OutputFormat::kTable;
  // nullptr: the kernels are run; tests answer without measuring.
  MeasurePromotion measure = nullptr;
};

// Exit code 1: an entry is refused; 3: the time was too short to tell.
absl::StatusOr<int> RunPromotion(const PromotionCommand& command,
                                 std::ostream& out, std::ostream& notes);

// The order of calls of one run, as indices: passes over the layers, in which a
// layer that is called less often than the most frequent one is left out now
// and then, evenly. Beyond kMostPasses counts are scaled down, to one at least.
inline constexpr int kMostPasses = 64;
std::vector<int> OrderOfCalls(const std::vector<int>& counts);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_PROMOTION_H_
