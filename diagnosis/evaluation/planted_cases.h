#ifndef OPTRAIL_DIAGNOSIS_EVALUATION_PLANTED_CASES_H_
#define OPTRAIL_DIAGNOSIS_EVALUATION_PLANTED_CASES_H_

// Kernels with one known bottleneck each, and healthy ones. A seed draws their
// sizes and amounts, so that cases are tried that nobody chose.
//
//   for (const PlantedCase& one : DrawCases(/*seed=*/1, /*cores=*/2)) ...
//
// There are several sets, each of an operator of its own (CaseSets). A set that
// was written after the diagnosis was done is held back until its first score
// is read; then what it shows may change the diagnosis, and it is one more set
// that the diagnosis knows.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace optrail::diagnosis {

struct PlantedCase {
  std::string name;      // "strided"
  std::string expected;  // the class; "" for a healthy kernel
  std::string op = "planted";
  std::string backend;  // "" or "native"
  std::string shape;
  std::string config;
  // The same kernel without the bottleneck; "" for a healthy one.
  std::string unplanted;
  int threads = 1;
};

// A row says what is drawn of a case: sizes between both ends, cols in steps of
// `col_step`, and the value of the operator's attribute.
struct CaseRow {
  const char* name;
  const char* expected;
  const char* variant;  // of the knob `cause`
  int rows[2];
  int cols[2];
  int attribute[2];
  std::vector<int> amounts;
  int threads = 1;
  const char* backend = "native";
  const char* unplanted = "healthy";  // variant
  int col_step = 64;
};

// 4 is the default of `attribute`.
std::vector<PlantedCase> DrawFrom(const std::vector<CaseRow>& table,
                                  const std::string& op,
                                  const std::string& attribute, int row_step,
                                  uint64_t seed, int cores);

// Adds a healthy case for each operator and shape: kernels that ship.
void AddShipped(const std::vector<std::pair<std::string, std::string>>& kernels,
                std::vector<PlantedCase>& cases);

// Cases that need more cores than `cores` are left out. In a fixed order.
std::vector<PlantedCase> DrawCases(uint64_t seed, int cores);
// A polynomial of each element is `planted`; these are a filter down the
// columns and a product of each pixel's channels with a matrix.
std::vector<PlantedCase> DrawHeldBackCases(uint64_t seed, int cores);
std::vector<PlantedCase> DrawChannelMixCases(uint64_t seed, int cores);

// Kernels of a GPU; sizes are those of an H200, in and beyond its L2.
std::vector<PlantedCase> DrawCudaCases(uint64_t seed);

struct CaseSet {
  const char* name;  // of its operator
  std::vector<PlantedCase> (*draw)(uint64_t seed, int cores);
};
// The sets of kernels of a CPU, the oldest first.
const std::vector<CaseSet>& CaseSets();

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_EVALUATION_PLANTED_CASES_H_
