#ifndef OPTRAIL_OPS_CORE_JIT_BACKEND_H_
#define OPTRAIL_OPS_CORE_JIT_BACKEND_H_

// A backend whose kernel the system's C++ compiler compiles when it is asked
// for, for exactly this machine (-march=native) and one config: knobs become
// macros. The `operator` macro makes one of every *.jit.cc among `backends`.
//
//   operator(name = "softmax", backends = {"native": ["softmax.jit.cc"]}, ...)
//
// jit.h is what the kernel sees. The compiler is $OPTRAIL_CXX, else c++, g++ or
// clang++, whichever is found first; without one the backend is UNSUPPORTED.
// Its version, the options, what "native" stands for here, the source and all
// that it includes are part of the key of the compiled code.

#include <memory>
#include <string>

#include "ops/core/backend.h"

namespace optrail::ops {

std::shared_ptr<Backend> MakeJitBackend(std::string name);

// An option that may be added to a recipe, as may any option of the compiler:
// the artifact then has the facts of instruction_mix.h, where objdump is
// installed.
inline constexpr char kLoopFactsOption[] = "--optrail-loop-facts";

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_JIT_BACKEND_H_
