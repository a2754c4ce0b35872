#ifndef OPTRAIL_OPS_DEVICE_CUDA_DRIVER_H_
#define OPTRAIL_OPS_DEVICE_CUDA_DRIVER_H_

// The CUDA driver, loaded at run time: one binary serves machines with and
// without it. Only what Optrail calls is declared, by hand, from the CUDA
// Driver API reference; the versions of the symbols (cuMemAlloc_v2) are those
// of CUDA 12 and later.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const Driver* driver, Driver::Get());
//   OPTRAIL_RETURN_IF_ERROR(
//       driver->Check(driver->MemAlloc(&address, bytes), "cuMemAlloc"));
//
// It is no wrapper that owns things: measured_gpu.h is.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::ops::cuda {

using Address = uint64_t;  // CUdeviceptr
using Context = void*;
using Module = void*;
using Function = void*;
using Stream = void*;
using Event = void*;
using Graph = void*;
using GraphExec = void*;
using GraphNode = void*;
using Memory = unsigned long long;  // CUmemGenericAllocationHandle

// CUtensorMap: how the bulk copy engine sees a matrix.
struct alignas(64) TensorMap {
  uint64_t opaque[16];
};

// CUdevice_attribute, those that are asked for.
enum class DeviceAttribute : int {
  kWarpSize = 10,
  kRegistersPerBlock = 12,
  kClockKhz = 13,
  kMultiprocessors = 16,
  kMemoryClockKhz = 36,
  kMemoryBusBits = 37,
  kL2Bytes = 38,
  kThreadsPerMultiprocessor = 39,
  kMajor = 75,
  kMinor = 76,
  kSharedBytesPerMultiprocessor = 81,
  kRegistersPerMultiprocessor = 82,
  kSharedBytesPerBlock = 97,  // with opt-in
};

// CUfunction_attribute.
enum class FunctionAttribute : int {
  kStaticSharedBytes = 1,
  kLocalBytes = 3,
  kRegisters = 4,
  kMaxDynamicSharedBytes = 8,
  kNonPortableClusterSize = 14,
};

// CUpointer_attribute.
enum class PointerAttribute : int { kMemoryType = 2 };

// CUlaunchAttribute: a number, and a value whose first bytes a flag takes.
struct LaunchAttribute {
  int id;
  char padding[4];
  union {
    int flag;
    char bytes[64];
  };
};
inline constexpr int kProgrammaticStreamSerialization = 6;

// CUlaunchConfig.
struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

// CUresult, those that mean something to us.
enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kNotReady = 600,
};

// CUmemAllocationProp and CUmemAccessDesc, for memory of a device alone.
struct MemoryProperties {
  int type = 1;  // CU_MEM_ALLOCATION_TYPE_PINNED
  int handle_types = 0;
  int location_type = 1;  // CU_MEM_LOCATION_TYPE_DEVICE
  int device = 0;
  void* metadata = nullptr;
  unsigned char flags[8] = {};
};
struct MemoryAccess {
  int location_type = 1;
  int device = 0;
  int flags = 3;  // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
};

// CUDA_KERNEL_NODE_PARAMS_v2.
struct KernelNode {
  Function function;
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  void** parameters;
  void** extra;
  void* kernel;  // CUkernel, in place of a function
  Context context;
};
inline constexpr int kKernelNode = 0;  // CU_GRAPH_NODE_TYPE_KERNEL

class ToolkitLibrary;  // library.h

class Driver {
 public:
  // The driver of this machine, initialised, with at least one device.
  // Unavailable, "unsupported here: why", without. Loaded once, never unloaded.
  static absl::StatusOr<const Driver*> Get();

  // Before the first Get(): this process is somebody else's, whose environment
  // must stay as it is. Else variables that make contexts start faster are set.
  static void KeepEnvironment();

  // The same from another library, for tests with a driver that fails.
  static absl::StatusOr<Driver> Load(const std::string& library);

  // OK; ResourceExhausted for memory; Internal with the error's name, what it
  // means, and `what` was called.
  absl::Status Check(int result, absl::string_view what) const;

  int version() const { return version_; }  // 13000 is 13.0

  // Functions of the driver API, without "cu".
  int (*DeviceGetCount)(int* count);
  int (*DeviceGet)(int* device, int ordinal);
  int (*DeviceGetName)(char* name, int length, int device);
  int (*DeviceGetAttribute)(int* value, int attribute, int device);
  int (*DeviceTotalMem)(size_t* bytes, int device);
  int (*DeviceGetPciBusId)(char* id, int length, int device);
  int (*DeviceGetUuid)(unsigned char* uuid, int device);  // 16 bytes
  int (*PrimaryCtxRetain)(Context* context, int device);
  int (*CtxSetCurrent)(Context context);
  int (*CtxGetCurrent)(Context* context);  // of the calling thread, or null
  int (*CtxGetDevice)(int* device);
  int (*CtxPushCurrent)(Context context);
  int (*CtxPopCurrent)(Context* context);
  int (*CtxSynchronize)();
  int (*MemAlloc)(Address* address, size_t bytes);
  int (*MemFree)(Address address);
  int (*MemAllocAsync)(Address* address, size_t bytes, Stream stream);
  int (*MemFreeAsync)(Address address, Stream stream);
  int (*PointerGetAttribute)(void* value, int attribute, Address address);
  int (*MemGetInfo)(size_t* free_bytes, size_t* total_bytes);
  int (*MemHostAlloc)(void** memory, size_t bytes, unsigned flags);
  int (*MemFreeHost)(void* memory);
  int (*MemcpyHtoD)(Address to, const void* from, size_t bytes);
  int (*MemcpyDtoH)(void* to, Address from, size_t bytes);
  int (*MemcpyHtoDAsync)(Address to, const void* from, size_t bytes,
                         Stream stream);
  int (*MemcpyDtoDAsync)(Address to, Address from, size_t bytes, Stream stream);
  int (*MemsetD8Async)(Address to, unsigned char value, size_t bytes,
                       Stream stream);
  int (*MemsetD16Async)(Address to, unsigned short value, size_t count,
                        Stream stream);
  int (*MemsetD32Async)(Address to, unsigned value, size_t count,
                        Stream stream);
  int (*ModuleLoadData)(Module* module, const void* image);
  int (*ModuleUnload)(Module module);
  int (*ModuleGetFunction)(Function* function, Module module, const char* name);
  int (*FuncGetAttribute)(int* value, int attribute, Function function);
  int (*FuncSetAttribute)(Function function, int attribute, int value);
  int (*LaunchKernel)(Function function, unsigned grid_x, unsigned grid_y,
                      unsigned grid_z, unsigned block_x, unsigned block_y,
                      unsigned block_z, unsigned shared_bytes, Stream stream,
                      void** parameters, void** extra);
  // Null before CUDA 11.8.
  int (*LaunchKernelEx)(const LaunchConfig* config, Function function,
                        void** parameters, void** extra);
  int (*StreamCreate)(Stream* stream, unsigned flags);
  int (*StreamDestroy)(Stream stream);
  int (*StreamSynchronize)(Stream stream);
  int (*StreamBeginCapture)(Stream stream, int mode);
  int (*StreamEndCapture)(Stream stream, Graph* graph);
  int (*GraphInstantiate)(GraphExec* exec, Graph graph,
                          unsigned long long flags);
  int (*GraphLaunch)(GraphExec exec, Stream stream);
  int (*GraphDestroy)(Graph graph);
  int (*GraphExecDestroy)(GraphExec exec);
  int (*StreamWaitEvent)(Stream stream, Event event, unsigned flags);
  int (*EventCreate)(Event* event, unsigned flags);
  int (*EventDestroy)(Event event);
  int (*EventRecord)(Event event, Stream stream);
  int (*EventSynchronize)(Event event);
  int (*EventElapsedTime)(float* milliseconds, Event start, Event end);
  // Null before CUDA 12.
  int (*TensorMapEncodeTiled)(TensorMap* map, int data_type, uint32_t rank,
                              void* address, const uint64_t* dims,
                              const uint64_t* stride_bytes, const uint32_t* box,
                              const uint32_t* element_strides, int interleave,
                              int swizzle, int l2_promotion, int fill);
  int (*TensorMapEncodeIm2col)(TensorMap* map, int data_type, uint32_t rank,
                               void* address, const uint64_t* dims,
                               const uint64_t* stride_bytes, const int* lower,
                               const int* upper, uint32_t channels,
                               uint32_t pixels, const uint32_t* element_strides,
                               int interleave, int swizzle, int l2_promotion,
                               int fill);

  // For experiments on what a kernel waits for; null where the driver lacks
  // them, for which HasVirtualMemory() and HasKernelNodes() ask.
  int (*MemGetAllocationGranularity)(size_t* bytes,
                                     const MemoryProperties* properties,
                                     int option);
  int (*MemAddressReserve)(Address* address, size_t bytes, size_t alignment,
                           Address hint, unsigned long long flags);
  int (*MemAddressFree)(Address address, size_t bytes);
  int (*MemCreate)(Memory* memory, size_t bytes,
                   const MemoryProperties* properties,
                   unsigned long long flags);
  int (*MemRelease)(Memory memory);
  int (*MemMap)(Address address, size_t bytes, size_t offset, Memory memory,
                unsigned long long flags);
  int (*MemUnmap)(Address address, size_t bytes);
  int (*MemSetAccess)(Address address, size_t bytes, const MemoryAccess* access,
                      size_t count);
  int (*GraphGetNodes)(Graph graph, GraphNode* nodes, size_t* count);
  int (*GraphNodeGetType)(GraphNode node, int* type);
  int (*GraphKernelNodeGetParams)(GraphNode node, KernelNode* kernel);
  int (*KernelGetFunction)(Function* function, void* kernel);
  int (*OccupancyMaxActiveBlocks)(int* blocks, Function function,
                                  int block_threads, size_t shared_bytes);
  bool HasVirtualMemory() const;
  bool HasKernelNodes() const;

 private:
  // Parts of Load().
  absl::Status GetDevicesAndMemory(const ToolkitLibrary& library);
  absl::Status GetKernelsAndStreams(const ToolkitLibrary& library);
  void GetWhatThereIs(const ToolkitLibrary& library);

  int (*GetErrorName)(int result, const char** name);
  int (*GetErrorString)(int result, const char** text);
  int version_ = 0;
};

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_DRIVER_H_
