#ifndef OPTRAIL_SUITES_WORKER_DEVICES_H_
#define OPTRAIL_SUITES_WORKER_DEVICES_H_

// Devices by kind: the one place that knows every kind there is.

#include <memory>

#include "absl/status/statusor.h"
#include "ops/core/device.h"
#include "tuning/proto/context.pb.h"

namespace optrail::suites {

// `threads` is for the CPU; other kinds ignore it. Unimplemented or
// Unavailable, "unsupported here: why", if this machine has no such device.
absl::StatusOr<std::unique_ptr<ops::Device>> MakeDevice(proto::DeviceKind kind,
                                                        int threads);

// The fingerprint, without making the device ready.
absl::StatusOr<proto::Hardware> HardwareOf(proto::DeviceKind kind);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_DEVICES_H_
