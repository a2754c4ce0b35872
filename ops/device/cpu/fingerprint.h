#ifndef OPTRAIL_OPS_DEVICE_CPU_FINGERPRINT_H_
#define OPTRAIL_OPS_DEVICE_CPU_FINGERPRINT_H_

// What a result on this CPU is valid for, under an id that people can read and
// that is the same after a reboot, a new host name or a new kernel:
//
//   amd-epyc-zen4-2c              vendor, brand, microarchitecture, cores
//   intel-xeon-sapphire-rapids-2c
//   amd-epyc-zen4-2c-noavx512     the hypervisor hides AVX-512
//   intel-xeon-emerald-rapids-2c-amx   with AMX's tiles, which many hide
//   intel-xeon-fam6-mod200-8c     a model that this version does not know
//
// The microarchitecture comes from family, model and stepping. Hypervisors may
// report a model that is not the machine's; they hide features but cannot
// invent them. So when a feature is present that the reported model does not
// have (AMX on model 167, a desktop processor), the features decide instead:
// the oldest server microarchitecture of the vendor that has them all.
//
// Tiles are named where they are, not where they lack: of one processor as many
// virtual machines hide them as show them, libraries multiply bfloat16 three
// times as fast with them, and what was recorded before they were named was
// without. (But for Sapphire Rapids, whose older records had them unnamed.)
//
// "Cores" are those that this process may use: its affinity mask when first
// asked, and the CPU quota of its control group, rounded down.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "tuning/proto/context.pb.h"

namespace optrail::ops {

// What the system says, before it is interpreted.
struct CpuFacts {
  std::string vendor;  // "GenuineIntel", "AuthenticAMD", "ARM"
  std::string model_name;
  int family = 0;  // Arm: implementer
  int model = 0;   // Arm: part
  int stepping = 0;
  std::vector<std::string> flags;
  int usable_cores = 1;
  absl::optional<int64_t> l1d_bytes, l2_bytes, l3_bytes, memory_bytes;
};

// Reads <root>/proc and <root>/sys. Missing files leave fields empty.
// usable_cores is what the files under root say about quotas, and
// `affinity_cores` at most.
CpuFacts ReadCpuFacts(const std::string& root, int affinity_cores);

proto::Hardware HardwareFrom(const CpuFacts& facts);

// Returns the hardware of this machine; the first call reads it.
const proto::Hardware& CpuHardware();

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CPU_FINGERPRINT_H_
