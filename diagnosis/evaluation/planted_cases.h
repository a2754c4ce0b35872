#ifndef OPTRAIL_DIAGNOSIS_EVALUATION_PLANTED_CASES_H_
#define OPTRAIL_DIAGNOSIS_EVALUATION_PLANTED_CASES_H_

// Kernels with one known bottleneck each, and healthy ones. A seed draws their
// sizes and amounts, so that cases are tried that nobody chose.
//
//   for (const PlantedCase& one : DrawCases(/*seed=*/1)) ...

#include <cstdint>
#include <string>
#include <vector>

namespace optrail::diagnosis {

struct PlantedCase {
  std::string name;      // "strided"
  std::string expected;  // the class; "" for a healthy kernel
  std::string op = "planted";
  std::string backend;  // "" or "native"
  std::string shape;
  std::string config;
  int threads = 1;
};

// Cases that need more cores than `cores` are left out. In a fixed order.
std::vector<PlantedCase> DrawCases(uint64_t seed, int cores);

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_EVALUATION_PLANTED_CASES_H_
