#ifndef OPTRAIL_TUNING_SCHEDULE_ALGORITHM_H_
#define OPTRAIL_TUNING_SCHEDULE_ALGORITHM_H_

// Algorithm says what is computed, as a small graph of stages: loops,
// reductions and access patterns, and nothing of kernels, operators or clocks.
// Sketch rules (rule.h) read it to find out how it may be computed.
//
// Its text is what a compiler tells of an algorithm that it was given:
//
//   input a 4 512 512             name, bytes of an element, extents
//   input b 4 512 512
//   stage c 4 512 512             the same; the last stage is the output
//   def 0 0                       associative, flop of a point, reductions
//   def 1 2 512
//   read input 0 0,0,1 0,1,0      of each dimension: a coefficient per loop
//   read input 1 1,0,0 0,0,1
//
// Dimensions and loops count from the innermost: axis 0 lies contiguously in
// memory. A definition's loops are the stage's axes and then its reductions.
// If the last stage is not the only output, a line says which are, "outputs
// 2 4 5".

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::tuning {

// Where one dimension of a source is read: a sum of loops times coefficients,
// plus what does not matter here.
struct AccessIndex {
  std::vector<int64_t> coefficients;
  bool affine = true;  // "*" in the text: anywhere in the source
};

struct Access {
  bool of_input = false;
  int source = 0;  // of the inputs or of the stages
  std::vector<AccessIndex> dims;
};

// What `outer` reads through a stage that itself reads by `inner`.
Access Composed(const Access& outer, const Access& inner);

struct Definition {
  std::vector<int64_t> reductions;  // extents
  // The reduction may be taken in any order.
  bool associative = false;
  double flop = 0;  // of one point
  std::vector<Access> reads;
};

struct Extents {
  std::string name;  // for people
  int element_bytes = 4;
  std::vector<int64_t> extents;
};

struct Stage : Extents {
  // The first has no reductions; the others update what it made.
  std::vector<Definition> definitions;
  bool HasReduction() const;
};

struct Algorithm {
  std::vector<Extents> inputs;
  std::vector<Stage> stages;  // a stage reads earlier ones
  std::vector<int> outputs;   // of the stages, at least one

  std::string ToText() const;
};

// InvalidArgument names the line and what was expected.
absl::StatusOr<Algorithm> ParseAlgorithm(absl::string_view text);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SCHEDULE_ALGORITHM_H_
