#ifndef OPTRAIL_OPS_CORE_INSTRUCTION_MIX_H_
#define OPTRAIL_OPS_CORE_INSTRUCTION_MIX_H_

// What the main loop of compiled code is made of, read from a disassembly: a
// fact of the code that needs neither a clock nor a counter.
//
//   const std::map<std::string, int64_t> facts = LoopFacts(objdump_text);
//   facts.at("loop_stack_accesses");  // spills, mostly
//
// The main loop is the innermost one that computes the most floating-point
// values an iteration; among loops without any, the longest. The text is what
// `objdump -d --no-show-raw-insn` prints for x86-64. Empty where no loop was
// found, as in the text of another processor.
//
//   loop_instructions                     all of them
//   loop_vector_fp, loop_scalar_fp        arithmetic on packed and single
//   values loop_vector_bits                      mean width of the packed ones
//   loop_stack_accesses                   memory operands on the stack
//   loop_slow                             divisions and roots
//   loop_conversions                      between number formats
//   loop_calls, loop_locked, loop_gathers

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace optrail::ops {

std::map<std::string, int64_t> LoopFacts(absl::string_view disassembly);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_INSTRUCTION_MIX_H_
