#include "ops/device/cuda/driver.h"

#include <atomic>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "ops/device/cuda/library.h"

namespace optrail::ops::cuda {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";

std::atomic<bool> keeps_environment{false};

}  // namespace

absl::Status Driver::GetDevicesAndMemory(const ToolkitLibrary& library) {
  absl::Status found;
  const auto get = [&](const char* name, auto*& function) {
    found.Update(library.Get(name, function));
  };
  get("cuGetErrorName", GetErrorName);
  get("cuGetErrorString", GetErrorString);
  get("cuDeviceGetCount", DeviceGetCount);
  get("cuDeviceGet", DeviceGet);
  get("cuDeviceGetName", DeviceGetName);
  get("cuDeviceGetAttribute", DeviceGetAttribute);
  get("cuDeviceTotalMem_v2", DeviceTotalMem);
  get("cuDeviceGetPCIBusId", DeviceGetPciBusId);
  get("cuDeviceGetUuid_v2", DeviceGetUuid);
  get("cuDevicePrimaryCtxRetain", PrimaryCtxRetain);
  get("cuCtxSetCurrent", CtxSetCurrent);
  get("cuCtxGetCurrent", CtxGetCurrent);
  get("cuCtxGetDevice", CtxGetDevice);
  get("cuCtxPushCurrent_v2", CtxPushCurrent);
  get("cuCtxPopCurrent_v2", CtxPopCurrent);
  get("cuCtxSynchronize", CtxSynchronize);
  get("cuMemAlloc_v2", MemAlloc);
  get("cuMemFree_v2", MemFree);
  get("cuMemAllocAsync", MemAllocAsync);
  get("cuMemFreeAsync", MemFreeAsync);
  get("cuPointerGetAttribute", PointerGetAttribute);
  get("cuMemGetInfo_v2", MemGetInfo);
  get("cuMemHostAlloc", MemHostAlloc);
  get("cuMemFreeHost", MemFreeHost);
  get("cuMemcpyHtoD_v2", MemcpyHtoD);
  get("cuMemcpyHtoDAsync_v2", MemcpyHtoDAsync);
  get("cuMemcpyDtoH_v2", MemcpyDtoH);
  get("cuMemcpyDtoDAsync_v2", MemcpyDtoDAsync);
  get("cuMemsetD8Async", MemsetD8Async);
  get("cuMemsetD16Async", MemsetD16Async);
  get("cuMemsetD32Async", MemsetD32Async);
  return found;
}

absl::Status Driver::GetKernelsAndStreams(const ToolkitLibrary& library) {
  absl::Status found;
  const auto get = [&](const char* name, auto*& function) {
    found.Update(library.Get(name, function));
  };
  get("cuModuleLoadData", ModuleLoadData);
  get("cuModuleUnload", ModuleUnload);
  get("cuModuleGetFunction", ModuleGetFunction);
  get("cuFuncGetAttribute", FuncGetAttribute);
  get("cuFuncSetAttribute", FuncSetAttribute);
  get("cuLaunchKernel", LaunchKernel);
  get("cuStreamCreate", StreamCreate);
  get("cuStreamDestroy_v2", StreamDestroy);
  get("cuStreamSynchronize", StreamSynchronize);
  get("cuStreamBeginCapture_v2", StreamBeginCapture);
  get("cuStreamEndCapture", StreamEndCapture);
  get("cuGraphInstantiateWithFlags", GraphInstantiate);
  get("cuGraphLaunch", GraphLaunch);
  get("cuGraphDestroy", GraphDestroy);
  get("cuGraphExecDestroy", GraphExecDestroy);
  get("cuStreamWaitEvent", StreamWaitEvent);
  get("cuEventCreate", EventCreate);
  get("cuEventDestroy_v2", EventDestroy);
  get("cuEventRecord", EventRecord);
  get("cuEventSynchronize", EventSynchronize);
  get("cuEventElapsedTime", EventElapsedTime);
  return found;
}

void Driver::GetWhatThereIs(const ToolkitLibrary& library) {
  const auto get = [&](const char* name, auto*& function) {
    library.Get(name, function).IgnoreError();
  };
  get("cuLaunchKernelEx", LaunchKernelEx);
  get("cuTensorMapEncodeTiled", TensorMapEncodeTiled);
  get("cuTensorMapEncodeIm2col", TensorMapEncodeIm2col);
  get("cuMemGetAllocationGranularity", MemGetAllocationGranularity);
  get("cuMemAddressReserve", MemAddressReserve);
  get("cuMemAddressFree", MemAddressFree);
  get("cuMemCreate", MemCreate);
  get("cuMemRelease", MemRelease);
  get("cuMemMap", MemMap);
  get("cuMemUnmap", MemUnmap);
  get("cuMemSetAccess", MemSetAccess);
  get("cuGraphGetNodes", GraphGetNodes);
  get("cuGraphNodeGetType", GraphNodeGetType);
  get("cuGraphKernelNodeGetParams_v2", GraphKernelNodeGetParams);
  get("cuKernelGetFunction", KernelGetFunction);
  get("cuOccupancyMaxActiveBlocksPerMultiprocessor", OccupancyMaxActiveBlocks);
}

absl::StatusOr<Driver> Driver::Load(const std::string& library) {
  const absl::StatusOr<ToolkitLibrary> opened = ToolkitLibrary::Open({library});
  if (!opened.ok()) {
    return absl::UnavailableError(
        absl::StrCat(opened.status().message(),
                     "; next: install the driver of the GPU, or use the CPU "
                     "(--device=cpu)"));
  }
  Driver driver;
  int (*init)(unsigned flags) = nullptr;
  int (*version)(int* version) = nullptr;
  absl::Status found = opened->Get("cuInit", init);
  found.Update(opened->Get("cuDriverGetVersion", version));
  found.Update(driver.GetDevicesAndMemory(*opened));
  found.Update(driver.GetKernelsAndStreams(*opened));
  if (!found.ok()) {
    return absl::UnavailableError(
        absl::StrCat(found.message(), ", expected CUDA 11.4 or later"));
  }
  driver.GetWhatThereIs(*opened);
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
