#ifndef OPTRAIL_OPS_HALIDE_ALGORITHM_H_
#define OPTRAIL_OPS_HALIDE_ALGORITHM_H_

// What an operator's algorithm in Halide sees: the shape, and its inputs as
// images whose innermost dimension comes first. It says what is computed; how
// is found by tuning (docs/method/schedules.md), so it schedules nothing.
//
//   OPTRAIL_HALIDE_ALGORITHM(call) {
//     const Halide::ImageParam a = call.input(0), b = call.input(1);
//     Halide::Var x, y;
//     Halide::RDom k(0, call.dim("k"));
//     Halide::Func c("c");
//     c(x, y) = 0.0f;
//     c(x, y) += a(k, y) * b(x, k);
//     return c;
//   }
//
// The result is the operator's output; of several, `return {dx, dgamma, dbeta}`
// in the operator's order. What lies beside an image must not be read:
// Halide::BoundaryConditions::constant_exterior where there is padding.

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "Halide.h"

namespace optrail::halide {

struct Operand {
  Halide::Type type;
  bool is_input = false;
  std::vector<int64_t> extents;  // the innermost first
};

class Call {
 public:
  std::map<std::string, int64_t> dims;
  std::map<std::string, std::string> attributes;
  std::vector<Operand> operands;  // in the operator's order
  std::vector<Halide::ImageParam> inputs;

  int dim(const std::string& name) const {
    return static_cast<int>(dims.at(name));
  }
  // An integer attribute.
  int attribute(const std::string& name, int usual) const {
    const auto found = attributes.find(name);
    return found == attributes.end() ? usual : std::stoi(found->second);
  }
  std::string variant(const std::string& name, const std::string& usual) const {
    const auto found = attributes.find(name);
    return found == attributes.end() ? usual : found->second;
  }
  // In the operator's order of operands, outputs left out.
  const Halide::ImageParam& input(int i) const { return inputs.at(i); }
};

struct Results {
  Results(Halide::Func only) : funcs({std::move(only)}) {}  // NOLINT
  Results(std::initializer_list<Halide::Func> all) : funcs(all) {}
  std::vector<Halide::Func> funcs;
};

// Defined by OPTRAIL_HALIDE_ALGORITHM.
Results Algorithm(const Call& call);

}  // namespace optrail::halide

#define OPTRAIL_HALIDE_ALGORITHM(call)                 \
  optrail::halide::Results optrail::halide::Algorithm( \
      [[maybe_unused]] const optrail::halide::Call& call)

#endif  // OPTRAIL_OPS_HALIDE_ALGORITHM_H_
