// Prints what the device libraries find out about this machine, and how long
// that takes:
//
//   bazel run //ops/device/cpu:doctor_benchmark

#include <iostream>

#include "absl/time/clock.h"
#include "ops/device/cpu/ceilings.h"
#include "ops/device/cpu/device.h"
#include "ops/device/cpu/fingerprint.h"
#include "ops/device/cpu/noise.h"
#include "ops/device/toolchain.h"

namespace optrail::ops {
namespace {

int Main() {
  const absl::Time start = absl::Now();
  std::cout << CpuHardware().DebugString() << BuildToolchain().DebugString();
  const auto device = MakeCpuDevice(CpuHardware().cores());
  if (!device.ok()) {
    std::cerr << device.status() << "\n";
    return 1;
  }
  std::cout << "fingerprint and device: " << absl::Now() - start << "\n";
  const absl::Time begin = absl::Now();
  const auto ceilings = MeasureCeilings(**device);
  if (!ceilings.ok()) {
    std::cerr << ceilings.status() << "\n";
    return 1;
  }
  std::cout << ceilings->DebugString() << "ceilings: " << absl::Now() - begin
            << "\n";
  const NoiseReport noise = ProbeNoise(absl::Seconds(1));
  std::cout << "noise: p95 " << noise.p95_over_median << ", max "
            << noise.max_over_median << ", drift " << noise.drift
            << ", run delay " << noise.run_delay_fraction.value_or(-1)
            << ", steal " << noise.steal_fraction.value_or(-1) << "\n";
  const auto buffer = (*device)->Allocate(64 << 20);
  if (!buffer.ok()) return 1;
  std::cout << "64 MiB on pages of " << (*buffer)->page_bytes() << " bytes\n";
  const absl::Time flush = absl::Now();
  (*device)->FlushCaches();
  std::cout << "flushing 64 MiB: " << absl::Now() - flush << "\n";
  return 0;
}

}  // namespace
}  // namespace optrail::ops

int main() { return optrail::ops::Main(); }
