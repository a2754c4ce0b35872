#ifndef OPTRAIL_REPORTS_ATTENTION_H_
#define OPTRAIL_REPORTS_ATTENTION_H_

// A row groups the series that a reviewer answers at once: they got worse,
// better or failed, and one commit may explain them all. Every format lists
// these rows first.
//
//   for (const AttentionRow& row : AttentionRows(data)) {
//     out << row.range << ": " << row.series.size() << " benchmarks\n";
//   }
//
// The verdicts, sizes and suspects of a series are the judge's; a row only
// joins those whose suspects overlap.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "reports/report_data.h"

namespace optrail::reports {

// A command to copy.
struct NextCommand {
  std::string what;  // "bisect", "acknowledge", ...
  std::string text;
};

struct AttentionRow {
  Verdict verdict = Verdict::kNoBaseline;  // the worst of its series
  std::vector<int> series;                 // indices, the largest change first
  std::vector<int> hardware;  // indices into ReportData::hardware, ascending
  // The smallest and the largest relative change of its series; absent where
  // none decided the verdict.
  absl::optional<double> change_low, change_high;

  // One of the commits after `good` up to `bad` explains every series: indices
  // into ReportData::commits, -1 where not known.
  int good = -1, bad = -1;
  // Those that the report knows, oldest first, and how many there are along
  // first parents; absent where unknown.
  std::vector<int> suspects;
  absl::optional<int64_t> suspect_count;
  std::string range;  // "1a2b3c4d5e6f..5e6f7a8b9c0d"; one id for one suspect

  // One sentence: what the first series shows, with its name where there are
  // several.
  std::string text;
  std::vector<NextCommand> commands;
};

// Confirmed regressions come first, then failed and missing series, then
// suspected regressions, then improvements; among them the most recent first.
std::vector<AttentionRow> AttentionRows(const ReportData& data);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_ATTENTION_H_
