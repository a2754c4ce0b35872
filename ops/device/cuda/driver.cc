#include "ops/device/cuda/driver.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace optrail::ops::cuda {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";

std::atomic<bool> keeps_environment{false};

// The first symbol that is missing, or null.
class Symbols {
 public:
  Symbols(void* library) : library_(library) {}

  template <typename F>
  void Get(const char* name, F*& function, bool required = true) {
    function = reinterpret_cast<F*>(dlsym(library_, name));
    if (function == nullptr && required && missing_ == nullptr) {
      missing_ = name;
    }
  }
  const char* missing() const { return missing_; }

 private:
  void* const library_;
  const char* missing_ = nullptr;
};

}  // namespace

absl::StatusOr<Driver> Driver::Load(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("unsupported here: ", library, " not found (", dlerror(),
                     "); next: install the driver of the GPU, or use the CPU "
                     "(--device=cpu)"));
  }
  Driver driver;
  int (*init)(unsigned flags) = nullptr;
  int (*version)(int* version) = nullptr;
  Symbols symbols(handle);
  symbols.Get("cuInit", init);
  symbols.Get("cuDriverGetVersion", version);
  symbols.Get("cuGetErrorName", driver.GetErrorName);
  symbols.Get("cuGetErrorString", driver.GetErrorString);
  symbols.Get("cuDeviceGetCount", driver.DeviceGetCount);
  symbols.Get("cuDeviceGet", driver.DeviceGet);
  symbols.Get("cuDeviceGetName", driver.DeviceGetName);
  symbols.Get("cuDeviceGetAttribute", driver.DeviceGetAttribute);
  symbols.Get("cuDeviceTotalMem_v2", driver.DeviceTotalMem);
  symbols.Get("cuDeviceGetPCIBusId", driver.DeviceGetPciBusId);
  symbols.Get("cuDeviceGetUuid_v2", driver.DeviceGetUuid);
  symbols.Get("cuDevicePrimaryCtxRetain", driver.PrimaryCtxRetain);
  symbols.Get("cuCtxSetCurrent", driver.CtxSetCurrent);
  symbols.Get("cuCtxGetCurrent", driver.CtxGetCurrent);
  symbols.Get("cuCtxGetDevice", driver.CtxGetDevice);
  symbols.Get("cuCtxPushCurrent_v2", driver.CtxPushCurrent);
  symbols.Get("cuCtxPopCurrent_v2", driver.CtxPopCurrent);
  symbols.Get("cuCtxSynchronize", driver.CtxSynchronize);
  symbols.Get("cuMemAlloc_v2", driver.MemAlloc);
  symbols.Get("cuMemFree_v2", driver.MemFree);
  symbols.Get("cuMemAllocAsync", driver.MemAllocAsync);
  symbols.Get("cuMemFreeAsync", driver.MemFreeAsync);
  symbols.Get("cuPointerGetAttribute", driver.PointerGetAttribute);
  symbols.Get("cuMemGetInfo_v2", driver.MemGetInfo);
  symbols.Get("cuMemHostAlloc", driver.MemHostAlloc);
  symbols.Get("cuMemFreeHost", driver.MemFreeHost);
  symbols.Get("cuMemcpyHtoD_v2", driver.MemcpyHtoD);
  symbols.Get("cuMemcpyHtoDAsync_v2", driver.MemcpyHtoDAsync);
  symbols.Get("cuMemcpyDtoH_v2", driver.MemcpyDtoH);
  symbols.Get("cuMemcpyDtoDAsync_v2", driver.MemcpyDtoDAsync);
  symbols.Get("cuMemsetD8Async", driver.MemsetD8Async);
  symbols.Get("cuMemsetD16Async", driver.MemsetD16Async);
  symbols.Get("cuMemsetD32Async", driver.MemsetD32Async);
  symbols.Get("cuModuleLoadData", driver.ModuleLoadData);
  symbols.Get("cuModuleUnload", driver.ModuleUnload);
  symbols.Get("cuModuleGetFunction", driver.ModuleGetFunction);
  symbols.Get("cuFuncGetAttribute", driver.FuncGetAttribute);
  symbols.Get("cuFuncSetAttribute", driver.FuncSetAttribute);
  symbols.Get("cuLaunchKernel", driver.LaunchKernel);
  symbols.Get("cuLaunchKernelEx", driver.LaunchKernelEx, /*required=*/false);
  symbols.Get("cuStreamCreate", driver.StreamCreate);
  symbols.Get("cuStreamDestroy_v2", driver.StreamDestroy);
  symbols.Get("cuStreamSynchronize", driver.StreamSynchronize);
  symbols.Get("cuStreamBeginCapture_v2", driver.StreamBeginCapture);
  symbols.Get("cuStreamEndCapture", driver.StreamEndCapture);
  symbols.Get("cuGraphInstantiateWithFlags", driver.GraphInstantiate);
  symbols.Get("cuGraphLaunch", driver.GraphLaunch);
  symbols.Get("cuGraphDestroy", driver.GraphDestroy);
  symbols.Get("cuGraphExecDestroy", driver.GraphExecDestroy);
  symbols.Get("cuStreamWaitEvent", driver.StreamWaitEvent);
  symbols.Get("cuEventCreate", driver.EventCreate);
  symbols.Get("cuEventDestroy_v2", driver.EventDestroy);
  symbols.Get("cuEventRecord", driver.EventRecord);
  symbols.Get("cuEventSynchronize", driver.EventSynchronize);
  symbols.Get("cuEventElapsedTime", driver.EventElapsedTime);
  symbols.Get("cuTensorMapEncodeTiled", driver.TensorMapEncodeTiled,
              /*required=*/false);
  symbols.Get("cuTensorMapEncodeIm2col", driver.TensorMapEncodeIm2col,
              /*required=*/false);
  const auto get = [&](const char* name, auto*& function) {
    symbols.Get(name, function, /*required=*/false);
  };
  get("cuMemGetAllocationGranularity", driver.MemGetAllocationGranularity);
  get("cuMemAddressReserve", driver.MemAddressReserve);
  get("cuMemAddressFree", driver.MemAddressFree);
  get("cuMemCreate", driver.MemCreate);
  get("cuMemRelease", driver.MemRelease);
  get("cuMemMap", driver.MemMap);
  get("cuMemUnmap", driver.MemUnmap);
  get("cuMemSetAccess", driver.MemSetAccess);
  get("cuGraphGetNodes", driver.GraphGetNodes);
  get("cuGraphNodeGetType", driver.GraphNodeGetType);
  get("cuGraphKernelNodeGetParams_v2", driver.GraphKernelNodeGetParams);
  get("cuKernelGetFunction", driver.KernelGetFunction);
  get("cuOccupancyMaxActiveBlocksPerMultiprocessor",
      driver.OccupancyMaxActiveBlocks);
  if (symbols.missing() != nullptr) {
    return absl::UnavailableError(
        absl::StrCat("unsupported here: ", library, " has no function ",
                     symbols.missing(), ", expected CUDA 11.4 or later"));
  }
  // One stream is all there is: a context of one channel takes 51 ms to make in
  // place of 110, and eight of them, made at a time, 380 in place of 990.
  if (!keeps_environment) {
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", /*overwrite=*/0);
  }
  if (const int result = init(0); result != kSuccess) {
    return absl::UnavailableError(absl::StrCat(
        "unsupported here: ", driver.Check(result, "cuInit").message()));
  }
  int devices = 0;
  if (driver.DeviceGetCount(&devices) != kSuccess || devices == 0) {
    return absl::UnavailableError(absl::StrCat("unsupported here: ", library,
                                               " is here, but sees no device"));
  }
  version(&driver.version_);
  return driver;
}

bool Driver::HasVirtualMemory() const {
  return MemGetAllocationGranularity != nullptr &&
         MemAddressReserve != nullptr && MemAddressFree != nullptr &&
         MemCreate != nullptr && MemRelease != nullptr && MemMap != nullptr &&
         MemUnmap != nullptr && MemSetAccess != nullptr;
}

bool Driver::HasKernelNodes() const {
  return GraphGetNodes != nullptr && GraphNodeGetType != nullptr &&
         GraphKernelNodeGetParams != nullptr && KernelGetFunction != nullptr &&
         OccupancyMaxActiveBlocks != nullptr;
}

void Driver::KeepEnvironment() { keeps_environment = true; }

absl::StatusOr<const Driver*> Driver::Get() {
  // Never destroyed: threads may still look at it during exit.
  static const auto* const driver = new absl::StatusOr<Driver>(Load(kLibrary));
  if (!driver->ok()) return driver->status();
  return &**driver;
}

absl::Status Driver::Check(int result, absl::string_view what) const {
  if (result == kSuccess) return absl::OkStatus();
  const char* name = nullptr;
  const char* text = nullptr;
  GetErrorName(result, &name);
  GetErrorString(result, &text);
  const std::string message = absl::StrCat(
      what, ": ", name != nullptr ? name : "error", " (", result,
      text != nullptr ? ", " : "", text != nullptr ? text : "", ")");
  if (result == kOutOfMemory) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

}  // namespace optrail::ops::cuda
