#ifndef OPTRAIL_GRAPH_RUNNER_CUDA_CODEGEN_H_
#define OPTRAIL_GRAPH_RUNNER_CUDA_CODEGEN_H_

// Holds what the files that print loops as CUDA share: pieces of text, each a
// line or more of a kernel, and the texts that are the same in every file of
// kernels.
//
//   text = YPointer(type, 1) + GridLoop("int64_t", count) +
//          Decompose("int64_t", "i", order, dims, "    ") + "... }\n";

#include <cstdint>
#include <string>
#include <vector>

#include "graph/runner/codegen_text.h"

namespace optrail::graph {

// Threads of a block, where a kernel has no reason for others.
constexpr int kCudaThreads = 256;

// How many blocks share `threads` threads' work out.
int64_t CudaBlocks(int64_t threads);

// Declares y, or `name`, as parameter `operand` of the kernel.
std::string YPointer(proto::ElementType type, int operand);
std::string ReadPointer(const char* name, proto::ElementType type, int operand);

// Declares a variable for each of `dims`, which are numbered by `loops`, as the
// place of number `from`; the last one changes fastest.
std::string Decompose(const std::string& type, const std::string& from,
                      const std::vector<size_t>& loops, const Dims& dims,
                      const std::string& indent);

// "for (int i = ...)" over `count`, shared out over all threads.
std::string GridLoop(const std::string& type, int64_t count);

GeneratedKernel CudaConv(const WindowLoops& loops);
GeneratedKernel CudaPool(const WindowLoops& loops, bool maximum,
                         bool count_padding);

extern const char kCudaHead[], kCudaPredecessors[], kCudaBlocks[];

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_RUNNER_CUDA_CODEGEN_H_
