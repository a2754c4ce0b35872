#ifndef OPTRAIL_DIAGNOSIS_CODE_DIFFERENCE_H_
#define OPTRAIL_DIAGNOSIS_CODE_DIFFERENCE_H_

// Lines for an explanation (tracker/explain/explain.h) that need both sides
// built: how the compiled code differs, function by function, and the lines of
// the source that changed with it.
//
//   for (const std::string& line :
//        BuiltDifference("old/bench", "new/bench", git_diff)) {
//     Print(line);
//   }
//
// prints, the likeliest cause first,
//
//   code: blur(float const*, float*, long): values spilled to the stack; main
//     loop: instructions 12 -> 41, stack accesses 0 -> 18
//   source: blur.cc:14: "constexpr int kRows = 2;" -> "constexpr int kRows =
//   8;"
//
// Functions are ranked by how much more their main loop executes for the same
// data, counted statically: it is evidence, no measurement. x86-64 code needs
// objdump, kernels for CUDA need cuobjdump; without one a line says so.

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace optrail::diagnosis {

struct Code {
  // The disassembly of each function, without addresses that move when another
  // function grows; the texts of clones follow each other.
  std::map<std::string, std::string> functions;
  std::map<std::string, std::string> kernels;  // the same of SASS
  std::vector<std::string> unsupported;        // sentences: what was not read
};

// Adds what `objdump -d -C --no-show-raw-insn` prints.
void AddFunctions(absl::string_view disassembly, Code* code);

// Adds what `cuobjdump --dump-sass` prints.
void AddKernels(absl::string_view sass, Code* code);

// Disassembles programs and shared libraries; of several with one name of a
// function the last counts.
Code ReadCode(const std::vector<std::string>& files);

// The programs and shared libraries below a folder, by their first bytes, in
// the order of their names.
std::vector<std::string> ProgramsBelow(const std::string& folder);

// Compares two programs, or all programs below two folders.
std::vector<std::string> BuiltDifference(const std::string& before,
                                         const std::string& after,
                                         const std::string& source_diff);

// `source_diff`: what `git diff -U0` prints, "" for nothing. Never empty: where
// all functions are alike, a line says so.
std::vector<std::string> DifferenceLines(const Code& before, const Code& after,
                                         absl::string_view source_diff);

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_CODE_DIFFERENCE_H_
