#ifndef OPTRAIL_OPS_HALIDE_DESCRIBE_H_
#define OPTRAIL_OPS_HALIDE_DESCRIBE_H_

// The stages of an algorithm, read off its definition: in the terms of
// tuning/schedule/algorithm.h, whose text this prints. Stages go by the order
// in which the output's definition comes to them, never by Halide's names,
// which count whatever a process made before.

#include <string>
#include <vector>

#include "Halide.h"
#include "ops/halide/algorithm.h"

namespace optrail::halide {

// An algorithm's stages: what is read comes before what reads it.
struct Stages {
  std::vector<Halide::Func> funcs;
  std::vector<size_t> outputs;  // in the operator's order
};

// Throws a std::exception where the operator has other outputs.
Stages StagesOf(const Call& call, const Results& results);

// Throws a std::exception for what cannot be described, a scatter for one.
std::string Describe(const Call& call, const Stages& stages);

}  // namespace optrail::halide

#endif  // OPTRAIL_OPS_HALIDE_DESCRIBE_H_
