#ifndef OPTRAIL_OPS_HALIDE_COMPILE_H_
#define OPTRAIL_OPS_HALIDE_COMPILE_H_

// One request to the compiler, carried out: an algorithm described, or compiled
// with the steps of a schedule (tuning/schedule/program.h) or by one of
// Halide's autoschedulers. It keeps nothing and may crash, hang or eat memory:
// compiler_main.cc gives each a process of its own.
//
//   kind compile                      or: describe; object, which is not linked
//   target x86-64-linux-avx2-fma      as Halide calls it
//   dim m 512
//   attribute padding 1
//   operand f32 in 512 512            rows first, as the operator says
//   operand f32 out 512 512
//   object /tmp/x/kernel.o            where to
//   autoscheduler Adams2019 16        or steps, one a line:
//   step split 0 1 x0 16
//
// Nothing of Halide is in this header, which includes none of its 1.2 MB.

#include <string>

#include "ops/halide/entry_point.h"

namespace optrail::halide {

struct Reply {
  bool ok = false;
  std::string text;  // a description; why not
};

Reply CarryOut(const std::string& request);

}  // namespace optrail::halide

#endif  // OPTRAIL_OPS_HALIDE_COMPILE_H_
