#ifndef OPTRAIL_FLEET_FLEET_COMMAND_H_
#define OPTRAIL_FLEET_FLEET_COMMAND_H_

// `optrail fleet status` as a function; the other parts are calls of JobQueue,
// RunPilot and SubmitPilots (tracker/command/command_support.h says how
// commands answer).

#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"
#include "base/text/table.h"
#include "fleet/queue.h"

namespace optrail::fleet {

struct FleetStatusCommand {
  std::string history;
  OutputFormat format = OutputFormat::kTable;
  bool is_open_metrics = false;  // for Prometheus' textfile collector
  std::string file;              // replaced atomically; "": `out`
};
absl::StatusOr<int> RunFleetStatus(const FleetStatusCommand& options,
                                   std::ostream& out);

// Returns the status as OpenMetrics text: tasks by state, pilots, leases lost,
// tasks finished, measurements.
std::string OpenMetricsText(const FleetStatus& status);

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_FLEET_COMMAND_H_
