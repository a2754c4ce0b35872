#ifndef OPTRAIL_OPS_CORE_DEVICE_TYPE_H_
#define OPTRAIL_OPS_CORE_DEVICE_TYPE_H_

// A kind of device, known without having one. Each kind announces itself where
// it is linked in, and whoever needs a device asks here: suites, tracker and
// reports hold no list of kinds.
//
//   class CpuType : public DeviceType { ... };
//   OPTRAIL_REGISTER_DEVICE_TYPE(CpuType)
//
//   OPTRAIL_ASSIGN_OR_RETURN(const DeviceType* type, FindDeviceType(kind));
//   OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, type->Make({}));
//
// A kind of somebody else's needs a number that no other kind has: numbers from
// 1000 on are never going to be given away in context.proto.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/core/device.h"
#include "ops/core/measurement_policy.h"
#include "tuning/proto/context.pb.h"
#include "tuning/proto/measurement_settings.pb.h"

namespace optrail::ops {

struct DeviceOptions {
  int threads = 1;  // of the host, where kernels run on it
};

class DeviceType {
 public:
  virtual ~DeviceType() = default;

  virtual proto::DeviceKind kind() const = 0;

  // The name that people call it (--device=NAME): [a-z][a-z0-9_]*. Stored data
  // has the number, and no name of a kind that context.proto does not list.
  virtual std::string name() const;

  // The fingerprint of this machine's device, without making it ready.
  // Unavailable or Unimplemented, "unsupported here: why", if there is none.
  virtual absl::StatusOr<proto::Hardware> Hardware() const = 0;

  // Threads of the host that a kernel may run on; 1 where it runs elsewhere.
  virtual int max_threads(const proto::Hardware& hardware) const { return 1; }

  // One device of the kind with every attribute that it declares, against which
  // spaces can be checked where there is none.
  virtual proto::Hardware Declared() const { return proto::Hardware(); }

  // InvalidArgument for options that a device on that hardware cannot have.
  virtual absl::Status CheckOptions(const DeviceOptions& options,
                                    const proto::Hardware& hardware) const;
  virtual absl::StatusOr<std::unique_ptr<Device>> Make(
      const DeviceOptions& options) const = 0;

  // How its calls can be launched, where there is a choice; else empty.
  virtual std::vector<proto::LaunchMode> launch_modes() const { return {}; }

  // Cores of the host on which others may work while such a device is being
  // measured, without changing what is read there; empty: none. By default all
  // that this process may use but the first, which launches.
  virtual std::vector<int> SpareCores(const DeviceOptions& options) const;

  // How it wants to be measured.
  virtual MeasurementPolicy policy() const { return {}; }

  // A cheap text that changes whenever Hardware() may: a fingerprint that took
  // long to read is kept under it. Empty: Hardware() is cheap, or nobody knows.
  virtual std::string Identity() const { return ""; }

  // The instruction set that compilers build for; empty where it follows from
  // the hardware.
  virtual std::string isa() const { return ""; }

  // What its monitor takes for disturbed, for the record.
  virtual void FillSettings(proto::MeasurementSettings* settings) const {}

  // For `optrail doctor`: what works here, and why something does not.
  struct Support {
    std::string what;
    std::string here;
  };
  virtual std::vector<Support> DescribeSupport() const { return {}; }
};

// Unimplemented, "unsupported here: ...", if no such kind is linked in.
absl::StatusOr<const DeviceType*> FindDeviceType(proto::DeviceKind kind);

// By its name, or by the number of a kind that context.proto does not list.
// NotFound names those that this binary has.
absl::StatusOr<const DeviceType*> FindDeviceTypeNamed(absl::string_view name);

// By number.
std::vector<const DeviceType*> ListDeviceTypes();

// Before main; a kind given twice stops the process.
void RegisterDeviceType(std::unique_ptr<DeviceType> type);

// The steps in one.
absl::StatusOr<proto::Hardware> HardwareOf(proto::DeviceKind kind);
absl::StatusOr<std::unique_ptr<Device>> MakeDevice(
    proto::DeviceKind kind, const DeviceOptions& options);

}  // namespace optrail::ops

#define OPTRAIL_REGISTER_DEVICE_TYPE(Class)                                \
  [[maybe_unused]] static const bool optrail_device_type_registered = [] { \
    ::optrail::ops::RegisterDeviceType(std::make_unique<Class>());         \
    return true;                                                           \
  }();

#endif  // OPTRAIL_OPS_CORE_DEVICE_TYPE_H_
