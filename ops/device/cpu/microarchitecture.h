#ifndef OPTRAIL_OPS_DEVICE_CPU_MICROARCHITECTURE_H_
#define OPTRAIL_OPS_DEVICE_CPU_MICROARCHITECTURE_H_

// Names of CPU microarchitectures, from what the processor says about itself.
// See fingerprint.h for the rules. To teach it a new processor, add a line to
// the table in microarchitecture.cc and a case to fingerprint_test.cc.

#include <set>
#include <string>

#include "absl/strings/string_view.h"

namespace optrail::ops {

struct Microarchitecture {
  std::string name;  // "amd-epyc-zen4", or "intel-xeon-fam6-mod200"
  // The processor has AVX-512 but this system does not show it.
  bool hides_avx512 = false;
};

// `vendor`, `model_name` and `flags` as in /proc/cpuinfo.
Microarchitecture Classify(absl::string_view vendor,
                           absl::string_view model_name, int family, int model,
                           int stepping, const std::set<std::string>& flags);

// Whether a CPU flag can change what a numeric kernel does.
bool MattersToKernels(absl::string_view flag);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CPU_MICROARCHITECTURE_H_
