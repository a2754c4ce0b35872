#ifndef OPTRAIL_DIAGNOSIS_CODE_CHANGE_H_
#define OPTRAIL_DIAGNOSIS_CODE_CHANGE_H_

// Compares the code of each function before and after a change, counted
// statically: it is evidence, no measurement.
//
//   for (const CodeChange& change :
//        ChangedFunctions(before.functions, after.functions)) {
//     std::cout << change.name << ": " << change.cause << "\n";
//   }

#include <map>
#include <string>
#include <vector>

namespace optrail::diagnosis {

struct CodeChange {
  std::string name;
  double severity = 0;  // log of how much more is executed for the same data
  std::string cause;    // "" if none is known
  std::string facts;    // "instructions 12 -> 41, stack accesses 0 -> 18"
};

// Texts by function, as Code of code_difference.h has them.
using CodeTexts = std::map<std::string, std::string>;

// The functions of both sides that differ, the worst first. Those of a CPU are
// compared by their main loops, kernels of a GPU (SASS) by their instructions.
std::vector<CodeChange> ChangedFunctions(const CodeTexts& before,
                                         const CodeTexts& after);
std::vector<CodeChange> ChangedKernels(const CodeTexts& before,
                                       const CodeTexts& after);

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_CODE_CHANGE_H_
