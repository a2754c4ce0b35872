#ifndef OPTRAIL_TRACKER_NOTIFY_NOTIFY_H_
#define OPTRAIL_TRACKER_NOTIFY_NOTIFY_H_

// Where a gate's verdict goes beside standard output and exit code.
//
//   OPTRAIL_RETURN_IF_ERROR(Publish(outputs, report));

#include <string>

#include "absl/status/status.h"
#include "tracker/gate/gate.h"

namespace optrail::tracker {

struct GateOutputs {
  std::string verdict_out;   // JSON, written atomically
  std::string markdown_out;  // for the pull request, written atomically
  std::string junit_out;     // JUnit's XML (junit.h), written atomically
  std::string annotations;   // "github", "azure", "teamcity"; "": none
  std::string badge_out;     // SVG file, written atomically
  std::string badge_label = "performance";
  // Run with the verdict's JSON (as --format=json prints it) on its standard
  // input unless the exit code is 0. That it fails is said and changes nothing.
  std::string alert_command;
};

// Before anything is measured: InvalidArgument for an option that is wrong.
absl::Status CheckOutputs(const GateOutputs& outputs);

// Annotations go to standard error, which CI services read as well. Errors:
// those of writing files.
absl::Status Publish(const GateOutputs& outputs, const GateReport& report);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_NOTIFY_NOTIFY_H_
