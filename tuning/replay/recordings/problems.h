#ifndef OPTRAIL_TUNING_REPLAY_RECORDINGS_PROBLEMS_H_
#define OPTRAIL_TUNING_REPLAY_RECORDINGS_PROBLEMS_H_

// What a space's kernel works on: inputs on the GPU, and the right results from
// a plain kernel.

#include <cstddef>
#include <cstdint>
#include <string>

#include "spaces.h"

namespace optrail::tuning::recordings {

struct Problem {
  void* in0 = nullptr;
  void* in1 = nullptr;
  void* out = nullptr;
  void* scratch = nullptr;   // as large as out, for kernels of several passes
  void* expected = nullptr;  // as large as out
  size_t out_words = 0;      // of 32 bits
  bool integers = false;     // out is compared exactly
  bool accumulates = false;  // the kernel adds to out, which must be zeroed
  float tolerance = 0;       // on |out - expected| / (1 + |expected|)
};

// Ends the process on a CUDA error.
Problem MakeProblem(const std::string& space, const Size& size);
void FreeProblem(Problem& problem);

// Fills `out` with what no right result contains, or zeros it if the kernel
// accumulates.
void ResetOutput(const Problem& problem);
// Words of `out` that are wrong, or -1 after a CUDA error.
int64_t WrongWords(const Problem& problem);

// Keeps the GPU busy for about so many clock cycles.
void LaunchSpin(int64_t cycles);

}  // namespace optrail::tuning::recordings

#endif  // OPTRAIL_TUNING_REPLAY_RECORDINGS_PROBLEMS_H_
