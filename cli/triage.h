#ifndef OPTRAIL_CLI_TRIAGE_H_
#define OPTRAIL_CLI_TRIAGE_H_

// What ack, expect, mute and note have in common.

#include <string>

#include "absl/flags/declare.h"
#include "tracker/triage/triage_command.h"

ABSL_DECLARE_FLAG(std::string, reason);

namespace optrail::cli {

// Somebody says something of `scope`: --history, --format and --reason.
tracker::TriageAddCommand AddOptions(proto::TriageKind kind,
                                     const std::string& scope);

}  // namespace optrail::cli

#endif  // OPTRAIL_CLI_TRIAGE_H_
