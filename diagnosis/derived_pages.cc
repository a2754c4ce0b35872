#include "diagnosis/derived_pages.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "ops/device/cpu/page_trace.h"

namespace optrail::diagnosis {
namespace {

// The most operands that a page trace tells of.
constexpr int kMostOperands = 24;
// A walk across the layout visits a page once for each vector in it: 64 times
// where vectors are 64 bytes wide. A loop seldom makes so many passes.
constexpr double kWalkJumps = 40;
constexpr double kGatherJumps = 8;
// A blocked walk visits a page a few times less often than a walk, and seldom
// the page beside the last one, which a pass does. If rows are shorter than two
// pages, the next row begins on the same page or the one beside: a walk in
// blocks looks like passes there.
constexpr double kBlockedJumps = 8;
constexpr double kPassAdjacent = .3;
constexpr double kPageBytes = 4096;
constexpr double kTellingRowBytes = 2 * kPageBytes;
// There, passes are believed only if they explain the time: at the measured
// bandwidth of the level they take this share of it.
constexpr double kLeastOfTime = .4;
constexpr double kMostOfTime = 1.2;
// With a larger share of regular visits a walk goes in an order.
constexpr double kInOrder = .5;
constexpr double kLeastWorkspace = .25;
// Pages that were visited so often by then are come back to.
constexpr double kComesBack = 1.5;

// The share of the main loop's instructions that one pass would not need:
// loads and stores, which an L2 serves as fast as an L1. Code that computes
// more than it loads and stores keeps values in registers between its passes.
double PassAccesses(const Numbers& numbers, double passes) {
  const double accesses = numbers.ValueOr("loop_memory_operands", 0);
  const double instructions = numbers.ValueOr("loop_instructions", 0);
  const double arithmetic = numbers.ValueOr("loop_vector_fp", 0) +
                            numbers.ValueOr("loop_scalar_fp", 0);
  if (passes < 3 || instructions <= 0 || arithmetic > accesses) return 0;
  return accesses / instructions * (1 - 1 / passes);
}

// The share of the time that computing without a workspace would not need, as
// if half of its visits were to store and half to load. A quarter of the peak
// of arithmetic pays for copies, as packed operands of a product of matrices
// do.
double CopyAccesses(const Numbers& numbers, double workspace_share) {
  constexpr double kPays = .25;
  const Number* const arithmetic = numbers.Find("arithmetic_share");
  if (workspace_share < kLeastWorkspace || arithmetic == nullptr) return 0;
  return workspace_share / 2 * std::max(0., 1 - arithmetic->value / kPays);
}

// The pages that calls visited, over all operands and of the worst one.
struct PageVisits {
  double visits = 0, distinct = 0, workspace = 0;
  // The operand whose pages are visited most often.
  double jumps = 0, regular = 0;
  double adjacent = 1, row_bytes = kTellingRowBytes;
  bool cut = false;  // its trace ended before all was seen
  // The operand that is visited in no order most often.
  double gather_jumps = 0, gather_visits = 0;

  double Passes() const { return visits / std::max(distinct, 1.); }
  double WorkspaceShare() const { return workspace / visits; }
  // Says whether the worst operand is walked across its layout.
  bool Walks() const {
    return regular >= kInOrder &&
           (jumps >= kWalkJumps ||
            (jumps >= kBlockedJumps && adjacent <= kPassAdjacent));
  }
};

void AddVisits(const Numbers& numbers, const std::string& operand,
               PageVisits* all) {
  const Number* const visited =
      numbers.Find(absl::StrCat("page_visits:", operand));
  if (visited == nullptr) return;
  const double pages =
      numbers.ValueOr(absl::StrCat("pages_visited:", operand), 1);
  all->visits += visited->value;
  all->distinct += pages;
  if (operand == "workspace") all->workspace = visited->value;
  // A page or two can be visited often at no cost.
  constexpr double kFewPages = 16;
  if (pages < kFewPages) return;
  const double jumps = visited->value / pages;
  const double regular =
      numbers.ValueOr(absl::StrCat("regular_visits:", operand), 0) /
      visited->value;
  // A large operand is left before its pages are visited so often.
  const bool cut =
      visited->value >= ops::PageTrace::kMostVisits && jumps >= kComesBack;
  if (jumps > all->jumps) {
    all->jumps = jumps;
    all->regular = regular;
    all->adjacent = numbers.ValueOr(absl::StrCat("adjacent_visits:", operand),
                                    visited->value) /
                    visited->value;
    all->row_bytes =
        numbers.ValueOr(absl::StrCat("row_bytes:", operand), kTellingRowBytes);
    all->cut = cut;
  }
  // Passes over a small operand hide no gather from a large one.
  const double gather = cut ? std::max(jumps, kGatherJumps) : jumps;
  if (regular <= kInOrder && gather > all->gather_jumps) {
    all->gather_jumps = gather;
    all->gather_visits = jumps;
  }
}

void AddWalk(const PageVisits& pages, Numbers* numbers) {
  const bool walks = pages.Walks();
  const Number* const streaming = numbers->Find("streaming_share");
  const double of_time =
      streaming == nullptr ? 0 : pages.Passes() * streaming->value;
  const bool explain_time = of_time >= kLeastOfTime && of_time <= kMostOfTime;
  const bool is_unclear = !walks && pages.regular >= kInOrder &&
                          pages.jumps >= kBlockedJumps &&
                          pages.row_bytes < kTellingRowBytes && !explain_time;
  if (is_unclear) {
    numbers->SetUnsupported("walk_jumps",
                            "rows are shorter than two pages: a walk in blocks "
                            "looks like passes");
  } else {
    numbers->Set("walk_jumps", walks ? pages.jumps : 0,
                 "visits a page of the worst operand, if it walks");
  }
  // A walk in one small block still misses the TLB. Where the operands could
  // have been streamed in a fraction of the time, half of the rest is its.
  const Number* const travel = numbers->Find("memory_gain");
  const double left =
      walks && streaming != nullptr ? (1 - streaming->value) / 2 : 0;
  if (left > numbers->ValueOr("memory_gain", 0)) {
    numbers->Set("walk_gain", left, kEstimated);
  } else if (travel != nullptr) {
    numbers->Set("walk_gain", *travel, "memory_gain");
  }
}

// The trace is evidence beside the stopwatch: extra passes and copies also cost
// instructions, which stay when operands need not travel.
void AddTraceEvidence(const PageVisits& pages, Numbers* numbers) {
  constexpr double kTraceCounts = .1;
  const double memory = numbers->ValueOr("memory_gain", 0);
  const double passes = pages.Passes();
  const double workspace = pages.WorkspaceShare();
  const bool traced =
      pages.Walks() || passes >= 3 || workspace >= kLeastWorkspace;
  const double shown =
      std::max({traced ? kTraceCounts : 0, PassAccesses(*numbers, passes),
                CopyAccesses(*numbers, workspace)});
  // A block that is slower than the operands is no evidence against the trace.
  const double evidence = std::max(0., memory) + shown;
  numbers->Set("memory_evidence", evidence,
               "memory_gain, and what the page trace shows");
  // No pass costs more than all traffic and its loads and stores.
  numbers->Set("pass_gain", std::min(std::max(0., 1 - 1 / passes), evidence),
               kEstimated);
  numbers->Set("workspace_gain", std::max(memory * workspace, workspace / 2),
               kEstimated);
}

}  // namespace

void AddPages(Numbers* numbers) {
  PageVisits pages;
  for (int i = 0; i < kMostOperands; ++i) {
    AddVisits(*numbers, absl::StrCat(i), &pages);
  }
  AddVisits(*numbers, "workspace", &pages);
  if (pages.visits == 0) return;
  numbers->Set("passes", pages.Passes(),
               "pages visited by one call, over all pages");
  numbers->Set("page_jumps", pages.jumps,
               pages.cut
                   ? "visits a page of the worst operand, until its trace ended"
                   : "visits a page of the worst operand");
  // In no order, no operand of 60 MB or more is visited eight times a page
  // before its trace ends.
  numbers->Set(
      "gather_visits", pages.gather_visits,
      "visits a page of the worst operand that is visited in no order");
  numbers->Set("gather_jumps", pages.gather_jumps,
               "gather_visits, or enough where the trace ended early");
  numbers->Set("regular_share", pages.regular,
               "visits of the worst operand, at a distance seen just before");
  numbers->Set("workspace_share", pages.WorkspaceShare(),
               "of the pages visited");
  AddWalk(pages, numbers);
  AddTraceEvidence(pages, numbers);
}

}  // namespace optrail::diagnosis
