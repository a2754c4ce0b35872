#ifndef OPTRAIL_LIB_CUDA_CONTEXT_H_
#define OPTRAIL_LIB_CUDA_CONTEXT_H_

// The CUDA context that a program made current: plans load their code into it
// and launch into the program's streams.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const auto context, CudaContext::Current());
//   backend.Load(artifact, shape, config, *context);
//   OPTRAIL_RETURN_IF_ERROR(context->CheckCurrent());
//   OPTRAIL_RETURN_IF_ERROR(invocation.Run(call));
//
// It makes no context, stream or event, waits for nothing and sets no variable
// of the environment. Thread-safe once kernels are loaded.
//
// Errors. FailedPrecondition: the calling thread's context is another one, or
// this process is a child of fork(). Unavailable, "unsupported here: why",
// without a driver.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/planning_device.h"
#include "ops/device/cuda/device.h"
#include "ops/device/cuda/driver.h"

namespace optrail::lib {

class CudaContext final : public ForPlans<ops::cuda::CudaDevice> {
 public:
  // The context of the calling thread.
  static absl::StatusOr<std::unique_ptr<CudaContext>> Current();
  // Unloads the code in the context, unless that is gone.
  ~CudaContext() override;

  absl::Status CheckCurrent() const;

  // Whether the driver takes the address for memory of this process that no GPU
  // can reach.
  bool IsHostMemory(const void* address) const;

  // Memory in the order of a stream, also of one that is being captured.
  absl::StatusOr<void*> Take(size_t bytes, void* stream) const;
  void Give(void* memory, void* stream) const;
  absl::Status Zero(void* memory, size_t bytes, void* stream) const;

 private:
  CudaContext(const ops::cuda::Driver& driver, proto::Hardware hardware,
              ops::cuda::Context context);

  const ops::cuda::Context context_;
  const uint32_t forks_;
};

}  // namespace optrail::lib

#endif  // OPTRAIL_LIB_CUDA_CONTEXT_H_
