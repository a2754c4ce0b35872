#ifndef OPTRAIL_OPS_DEVICE_CUDA_NVRTC_H_
#define OPTRAIL_OPS_DEVICE_CUDA_NVRTC_H_

// NVRTC, the CUDA C++ compiler as a library, loaded at run time. It needs no
// GPU: a machine without one can compile ahead for one that has.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const Nvrtc* nvrtc, Nvrtc::Get());
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const Cubin cubin,
//       nvrtc->Compile(source, "matmul.cu", {"-arch=sm_90a", "-DBN=128"}));
//
// A compilation takes hundreds of megabytes and may not be interrupted: run it
// in a process of its own where it must not hurt.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace optrail::ops::cuda {

struct Cubin {
  std::string bytes;
  std::string ptx;  // that it was made of
  std::string log;
  // "registers", "spill_bytes", "stack_bytes", "shared_bytes", as ptxas reports
  // them of the one kernel.
  std::map<std::string, int64_t> facts;
};

class Nvrtc {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;

  // Unavailable, "unsupported here: why", where it is not found.
  static absl::StatusOr<const Nvrtc*> Get();

  // "nvrtc 13.0".
  std::string version() const;

  // Whether it knows "--minimal", without the declarations of the runtime and
  // of textures: our kernels use none, and their front end takes 25 ms in place
  // of 80.
  bool has_minimal() const { return major_ * 100 + minor_ >= 1204; }
  // Whether it has a cache of its own, for which it loads the driver, and
  // "--no-cache" against that: we keep what we compile ourselves.
  bool has_cache() const { return major_ * 100 + minor_ >= 1209; }

  // Internal with the compiler's log if the source does not compile. `headers`
  // are (name, contents) of what it may include. Options as
  // of nvrtcCompileProgram; facts come from "-Xptxas -v", which is added.
  absl::StatusOr<Cubin> Compile(const std::string& source,
                                const std::string& name,
                                const std::vector<std::string>& options,
                                const Headers& headers = {}) const;

 private:
  static absl::StatusOr<Nvrtc> Load();

  int major_ = 0, minor_ = 0;
  const char* (*GetErrorString)(int result);
  int (*CreateProgram)(void** program, const char* source, const char* name,
                       int header_count, const char* const* headers,
                       const char* const* include_names);
  int (*DestroyProgram)(void** program);
  int (*CompileProgram)(void* program, int option_count,
                        const char* const* options);
  int (*GetProgramLogSize)(void* program, size_t* bytes);
  int (*GetProgramLog)(void* program, char* log);
  int (*GetCubinSize)(void* program, size_t* bytes);
  int (*GetCubin)(void* program, char* cubin);
  int (*GetPtxSize)(void* program, size_t* bytes);
  int (*GetPtx)(void* program, char* ptx);
};

// Reads the report of ptxas -v: "Used 168 registers", "8 bytes spill stores".
std::map<std::string, int64_t> FactsOfPtxasLog(const std::string& log);

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_NVRTC_H_
