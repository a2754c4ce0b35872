#ifndef OPTRAIL_SUITES_COMMAND_SHARED_FLAGS_H_
#define OPTRAIL_SUITES_COMMAND_SHARED_FLAGS_H_

// Shared by tune_flags.cc and bench_flags.cc, and private to command_flags.h:
// flags that both commands have. InvalidArgument names the flag, its value and
// what was expected.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "suites/worker/worker_options.h"
#include "tuning/proto/session.pb.h"

ABSL_DECLARE_FLAG(std::string, op);
ABSL_DECLARE_FLAG(bool, quiet);
ABSL_DECLARE_FLAG(uint64_t, seed);
ABSL_DECLARE_FLAG(int32_t, processes);

namespace optrail::suites {

inline constexpr int kDefaultProcesses = 5;

absl::Status CheckRange(absl::string_view flag, int64_t value, int64_t low,
                        int64_t high);

// --config_deadline and --max_config_mib.
absl::StatusOr<WorkerOptions> WorkerFromFlags();

// --objective, by the meters of --device, which is opened for them; empty for
// time alone.
absl::StatusOr<std::vector<proto::Objective>> ObjectivesFromFlags(
    bool may_open_device);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_COMMAND_SHARED_FLAGS_H_
