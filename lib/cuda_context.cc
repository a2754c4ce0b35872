#include "lib/cuda_context.h"

#include "base/status_macros.h"
#include "lib/threads.h"

namespace optrail::lib {
namespace {

using ops::cuda::Address;
using ops::cuda::Driver;

// Before main: the process belongs to the program.
const bool keeps_environment = (Driver::KeepEnvironment(), true);

Address AddressOf(const void* memory) {
  return reinterpret_cast<Address>(memory);
}

}  // namespace

CudaContext::CudaContext(const Driver& driver, proto::Hardware hardware,
                         ops::cuda::Context context)
    : ForPlans(driver, std::move(hardware)),
      context_(context),
      forks_(Forks()) {}

absl::StatusOr<std::unique_ptr<CudaContext>> CudaContext::Current() {
  OPTRAIL_ASSIGN_OR_RETURN(const Driver* driver, Driver::Get());
  ops::cuda::Context context = nullptr;
  OPTRAIL_RETURN_IF_ERROR(
      driver->Check(driver->CtxGetCurrent(&context), "cuCtxGetCurrent"));
  if (context == nullptr) {
    return absl::FailedPreconditionError(
        "no CUDA context is current on this thread; next: make the program's "
        "own current, by cudaSetDevice() and cudaFree(0), by cuCtxSetCurrent() "
        "or by torch.cuda.init()");
  }
  int device = 0;
  OPTRAIL_RETURN_IF_ERROR(
      driver->Check(driver->CtxGetDevice(&device), "cuCtxGetDevice"));
  OPTRAIL_ASSIGN_OR_RETURN(proto::Hardware hardware,
                           ops::cuda::HardwareOf(*driver, device));
  return std::unique_ptr<CudaContext>(
      new CudaContext(*driver, std::move(hardware), context));
}

CudaContext::~CudaContext() {
  // A child of fork() cannot reach what its parent loaded.
  if (Forks() != forks_ || driver().CtxPushCurrent(context_) != 0) return;
  Unload();
  ops::cuda::Context popped = nullptr;
  driver().CtxPopCurrent(&popped);
}

absl::Status CudaContext::CheckCurrent() const {
  if (Forks() != forks_) {
    return absl::FailedPreconditionError(
        "this plan was made before fork(), and CUDA does not work in a child; "
        "next: start processes by exec(), or use CUDA in the child alone");
  }
  ops::cuda::Context context = nullptr;
  OPTRAIL_RETURN_IF_ERROR(
      driver().Check(driver().CtxGetCurrent(&context), "cuCtxGetCurrent"));
  if (context == context_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      context == nullptr
          ? "no CUDA context is current on this thread; next: make the one "
            "current in which the plan was made"
          : "the CUDA context of this thread is not the one in which the plan "
            "was made; next: a plan for each context, or cuCtxSetCurrent()");
}

bool CudaContext::IsHostMemory(const void* address) const {
  unsigned type = 0;
  const int result = driver().PointerGetAttribute(
      &type, static_cast<int>(ops::cuda::PointerAttribute::kMemoryType),
      AddressOf(address));
  return result == ops::cuda::kInvalidValue;
}

absl::StatusOr<void*> CudaContext::Take(size_t bytes, void* stream) const {
  Address address = 0;
  OPTRAIL_RETURN_IF_ERROR(driver().Check(
      driver().MemAllocAsync(&address, bytes, stream), "cuMemAllocAsync"));
  return reinterpret_cast<void*>(address);
}

void CudaContext::Give(void* memory, void* stream) const {
  driver().MemFreeAsync(AddressOf(memory), stream);
}

absl::Status CudaContext::Zero(void* memory, size_t bytes, void* stream) const {
  if (bytes == 0) return absl::OkStatus();
  return driver().Check(
      driver().MemsetD8Async(AddressOf(memory), 0, bytes, stream),
      "cuMemsetD8Async");
}

}  // namespace optrail::lib
