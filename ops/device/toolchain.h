#ifndef OPTRAIL_OPS_DEVICE_TOOLCHAIN_H_
#define OPTRAIL_OPS_DEVICE_TOOLCHAIN_H_

// The toolchain and system of a result: its epoch. When one of them changes, a
// series starts anew, unlike the hardware id, which stays.

#include <string>

#include "tuning/proto/context.pb.h"

namespace optrail::ops {

// Compiler, flags and compilation mode of this build; operating system and
// kernel of this machine. The driver is left empty.
proto::Toolchain BuildToolchain();

// PRETTY_NAME of an os-release file; empty if it has none.
std::string OsName(const std::string& os_release);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_TOOLCHAIN_H_
