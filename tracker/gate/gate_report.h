#ifndef OPTRAIL_TRACKER_GATE_GATE_REPORT_H_
#define OPTRAIL_TRACKER_GATE_GATE_REPORT_H_

// A GateReport as people and programs read it.
//
//   std::cout << GateText(report);
//
// Names are escaped for where they go: a benchmark's name may come from anyone
// who can open a pull request.

#include <string>

#include "base/text/table.h"
#include "tracker/gate/gate.h"

namespace optrail::tracker {

// For people: what was compared with what, a table of what is not unchanged,
// the evidence for every red row, what to do next. Lines of at most `width`
// columns where that is possible (0: any).
std::string GateText(const GateReport& report, int width = 0);
// For a pull request.
std::string GateMarkdown(const GateReport& report);
// For programs: docs/method/gating.md describes the fields.
std::string GateJson(const GateReport& report);
// One of these, or CSV with one line per row.

std::string FormatGate(const GateReport& report, OutputFormat format,
                       int width = 0);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_GATE_GATE_REPORT_H_
