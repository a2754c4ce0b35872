#ifndef OPTRAIL_GRAPH_RUNNER_CODEGEN_TEXT_H_
#define OPTRAIL_GRAPH_RUNNER_CODEGEN_TEXT_H_

// The printers of generated kernels share this: the names of types, the lines
// of an expression, and loops in the order of memory. The printers are in
// codegen.cc (C++) and cuda_codegen.cc (CUDA).
//
//   Dims y_strides = {64, 1};
//   const Nest nest = NestOfLoop(expression, {32, 64}, y_strides);
//   const std::string text = Lines(expression, "    ");

#include <string>
#include <vector>

#include "graph/runner/codegen.h"

namespace optrail::graph {

// The type in memory, and the one in which values are computed.
std::string TypeName(proto::ElementType type);
std::string ValueName(proto::ElementType type);

// "i0 * 64 + i1"
std::string Place(const Dims& strides);

// The loops in an order that suits memory, those of one iteration left out and
// neighbours that walk through memory as one joined.
struct Nest {
  Dims dims;
  std::vector<Dims*> strides;  // of the loads and the result
  std::vector<bool> reduced;

  void Reorder(const std::vector<int>& order);
  void Erase(size_t d);
  void Collapse();
};

// Both rewrite the strides of the expression's loads and of y, to which the
// nest points.
Nest NestOfLoop(Expression& expression, const Dims& dims, Dims& y_strides);

struct ReductionNest {
  Nest nest;
  size_t first = 0;  // the first reduced loop
  // True if the innermost loop is over neighbours that have results of their
  // own.
  bool by_rows = false;
};
ReductionNest NestOfReduction(Expression& expression, const Dims& dims,
                              const std::vector<bool>& reduced,
                              Dims& y_strides);

// Declares a pointer for each operand that the expression loads.
std::string Pointers(const Expression& expression);
// The values of the expression at i0, i1, ...; the last one is Last(). Those
// that are marked have been read before: value v is q<v>.at[l].
std::string Lines(const Expression& expression, const std::string& indent,
                  const std::vector<bool>& in_vectors = {});
std::string Last(const Expression& expression);
proto::ElementType LastType(const Expression& expression);

// The function and the first value of a reduction.
std::string StepOf(const std::string& op);
std::string StartOf(const std::string& op, const std::string& type);

// Functions that are the same in both languages, and those of elementwise
// operators that `bodies` call.
std::string SharedFunctions();
std::string ElementwiseFunctions(const std::vector<GeneratedKernel>& kernels);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_RUNNER_CODEGEN_TEXT_H_
