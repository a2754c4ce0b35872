#ifndef OPTRAIL_OPS_DEVICE_CUDA_ABLATION_H_
#define OPTRAIL_OPS_DEVICE_CUDA_ABLATION_H_

// Ablations take one cost away from a kernel and leave the rest of its code, so
// that the stopwatch tells what that cost is. They rewrite PTX, the assembly
// that NVRTC makes of our sources; the driver compiles the result.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const std::string ptx,
//                            Ablate(cubin.ptx, Ablation::kCoalesced));
//
// A backend that is compiled on request takes AblationOption() as an option.
// The results of an ablated kernel mean nothing. Statements that are not
// understood stay as they are: bulk copies (TMA), and addresses of symbols.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace optrail::ops::cuda {

enum class Ablation {
  // Nothing: what the others are compared with, since the driver's compiler is
  // not NVRTC's.
  kNone,
  // The lanes of a warp read and write one segment of global memory, that of
  // the first active lane.
  kCoalesced,
  // Loads from global memory go to the first 8 KiB of each 2 MiB, which the L1
  // holds. For operands that begin at multiples of 2 MiB, alone.
  kNear,
  // The lanes of a warp read and write different banks of shared memory.
  kConflictFree,
  // Atomic operations on floats are stores. Those on integers stay: blocks meet
  // by them.
  kPlainStores,
  // Arrays in local memory have one element.
  kNoLocalArrays,
  // A thread may have as many registers as there are, whatever the kernel says
  // of blocks on a multiprocessor.
  kAllRegisters,
};

// "--optrail-ablation=coalesced".
std::string AblationOption(Ablation ablation);

struct RecipeOptions {
  std::vector<std::string> compiler;
  absl::optional<Ablation> ablation;
};
// InvalidArgument for an ablation that does not exist.
absl::StatusOr<RecipeOptions> SplitAblation(
    const std::vector<std::string>& options);

// Unimplemented, "unsupported here: why", where there is nothing to take away.
absl::StatusOr<std::string> Ablate(absl::string_view ptx, Ablation ablation);

// Statements of the code, by kind:
//
//   global_accesses, narrow_accesses   of global memory; of less than 4 bytes
//   tensor_instructions                mma, wgmma
std::map<std::string, int64_t> FactsOfPtx(absl::string_view ptx);

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_ABLATION_H_
