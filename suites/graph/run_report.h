#ifndef OPTRAIL_SUITES_GRAPH_RUN_REPORT_H_
#define OPTRAIL_SUITES_GRAPH_RUN_REPORT_H_

// What `optrail graph run` says of a model that was timed: on the terminal, as
// a page, and as a run in the history.
//
//   out << StepsTable(runner, timed).Format(format, TerminalWidth());
//   PrintWhole(runner, timed, flop, command, out);
//
// Times are in ns. Errors name the file that could not be written.

#include <cstdint>
#include <numeric>
#include <ostream>
#include <vector>

#include "absl/status/status.h"
#include "base/text/table.h"
#include "graph/runner/runner.h"
#include "suites/graph/run_graph.h"
#include "suites/stopwatch/stopwatch.h"

namespace optrail::suites {

struct TimedRun {
  Sampling whole;
  std::vector<double> steps_ns;

  double sum_ns() const {
    return std::accumulate(steps_ns.begin(), steps_ns.end(), 0.0);
  }
  bool is_known() const { return whole.outcome == proto::OK; }
};

// A row for each step, the slowest first.
Table StepsTable(const graph::Runner& runner, const TimedRun& timed);

// The time by kind of kernel, end to end, and the memory. `flop` are those of
// the graph's products and convolutions.
void PrintWhole(const graph::Runner& runner, const TimedRun& timed, double flop,
                const GraphRunCommand& command, std::ostream& out);

// How often each rule was applied, and why it was not.
void PrintFusion(const graph::FusionReport& report, std::ostream& out);

// Writes `command.page`.
absl::Status WriteRunPage(const GraphRunCommand& command,
                          const graph::Runner& runner, const TimedRun& timed,
                          double flop);

absl::Status RecordTimedRun(const GraphRunCommand& command,
                            const graph::Runner& runner, const TimedRun& timed,
                            double flop, int64_t started_unix_ns);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_RUN_REPORT_H_
