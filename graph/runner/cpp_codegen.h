#ifndef OPTRAIL_GRAPH_RUNNER_CPP_CODEGEN_H_
#define OPTRAIL_GRAPH_RUNNER_CPP_CODEGEN_H_

// The parts of the C++ printer that stand in files of their own.

#include <string>
#include <vector>

#include "graph/runner/codegen.h"

namespace optrail::graph {

std::string CppConvSource(const WindowLoops& loops);
std::string CppPoolSource(const WindowLoops& loops, bool maximum,
                          bool count_padding);
std::string CppFile(const std::vector<GeneratedKernel>& kernels);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_RUNNER_CPP_CODEGEN_H_
