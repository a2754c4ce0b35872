// A CUDA driver without a GPU, for tests: memory is the host's, launches do
// what their function's name says, and time passes by 10 us a launch. It fails
// where $OPTRAIL_FAKE_CUDA says: "call=code" pairs separated by commas, such as
// "cuMemAlloc=2,cuStreamSynchronize=700". It is NVML, too, for which this
// process computes and the one that the pair "process=PID" names; a pair
// "watts=600" is what it takes, else it tells nothing of its energy. "busy=40"
// is what that other process computes at present, in percent, and "busy=-1"
// says that it is idle; else nobody's activity is told.
//
// Functions: "nothing"; "overrun" writes behind its first operand's buffer;
// "differs", "stray", "repeat" and "project" are those of buffer.cc, "turn"
// that of ops/vendor/cudnn/cudnn.cc; "map" is relu of f32 in vectors of four.
//
// Memory is mapped in granules of 64 KiB; "cuMemMap=1" is a device that maps
// none.
//
// FakeLaunches(stream), FakeModules() and FakeMappings() count launches into a
// stream, modules that are loaded, and ranges and granules that are not freed;
// FakeOrder() tells the calls that order what streams do, and FakeBytesRead()
// how many bytes were copied to the host so far.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

using Address = unsigned long long;

// A captured launch.
struct Node {
  std::function<void()> run;
  void* function;
  unsigned grid_x, grid_y, block_x, shared_bytes;
};
using Nodes = std::vector<Node>;

struct Clock {
  long long now_ns = 0;
  bool capturing = false;
  Nodes captured;
};
Clock fake;
thread_local void *current_context = nullptr, *pushed_context = nullptr;
std::map<void*, int> launches;  // by stream
int loaded = 0;                 // modules
int mappings = 0;               // ranges of addresses, and granules
long long bytes_read = 0;       // by the host
std::map<Address, size_t> allocated;
std::map<void*, unsigned> dynamic_shared;  // that a function may ask for

constexpr long long kLaunchNs = 10'000;

int Scripted(const char* call) {
  const char* const script = getenv("OPTRAIL_FAKE_CUDA");
  if (script == nullptr) return 0;
  const std::string text = std::string(",") + script;
  const std::string key = std::string(",") + call + "=";
  const size_t at = text.find(key);
  return at == std::string::npos ? 0 : atoi(text.c_str() + at + key.size());
}

// "send stream=0x1 event=0x2".
std::string order;
void Log(const char* call, void* stream, void* event = nullptr) {
  char line[96];
  snprintf(line, sizeof line, "%s stream=%p event=%p\n", call, stream, event);
  order += line;
}

}  // namespace

#define FAKE(name, ...)             \
  extern "C" int name(__VA_ARGS__); \
  extern "C" int name(__VA_ARGS__)

FAKE(cuInit, unsigned) { return Scripted("cuInit"); }
FAKE(cuDriverGetVersion, int* version) {
  *version = 13000;
  return 0;
}
FAKE(cuGetErrorName, int result, const char** name) {
  *name = result == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                          : "CUDA_ERROR_UNKNOWN";
  return 0;
}
FAKE(cuGetErrorString, int, const char** text) {
  *text = "scripted";
  return 0;
}
FAKE(cuDeviceGetCount, int* count) {
  *count = Scripted("devices") == -1 ? 0 : 1;
  return Scripted("cuDeviceGetCount");
}
FAKE(cuDeviceGet, int* device, int) {
  *device = 0;
  return Scripted("cuDeviceGet");
}
FAKE(cuDeviceGetName, char* name, int length, int) {
  strncpy(name, "FAKE  GPU (test)", length);
  return 0;
}
FAKE(cuDeviceGetAttribute, int* value, int attribute, int) {
  static const std::map<int, int> values = {{10, 32},    {16, 4}, {38, 1 << 20},
                                            {39, 2048},  {75, 9}, {76, 0},
                                            {97, 232448}};
  const auto found = values.find(attribute);
  *value = found == values.end() ? 1 : found->second;
  return Scripted("cuDeviceGetAttribute");
}
FAKE(cuDeviceTotalMem_v2, size_t* bytes, int) {
  *bytes = size_t{1} << 30;
  return 0;
}
FAKE(cuDeviceGetPCIBusId, char* id, int length, int) {
  strncpy(id, "0000:00:00.0", length);
  return 0;
}
FAKE(cuDeviceGetUuid_v2, unsigned char* uuid, int) {
  for (int i = 0; i < 16; ++i) uuid[i] = static_cast<unsigned char>(16 * i + i);
  return 0;
}
FAKE(cuDevicePrimaryCtxRetain, void** context, int) {
  *context = &fake;
  return Scripted("cuDevicePrimaryCtxRetain");
}
FAKE(cuCtxSetCurrent, void* context) {
  current_context = context;
  return 0;
}
FAKE(cuCtxGetCurrent, void** context) {
  *context = current_context;
  return Scripted("cuCtxGetCurrent");
}
FAKE(cuCtxGetDevice, int* device) {
  *device = 0;
  return current_context == nullptr ? 201 : 0;  // CUDA_ERROR_INVALID_CONTEXT
}
FAKE(cuCtxPushCurrent_v2, void* context) {
  pushed_context = std::exchange(current_context, context);
  return Scripted("cuCtxPushCurrent");
}
FAKE(cuCtxPopCurrent_v2, void** context) {
  *context = std::exchange(current_context, pushed_context);
  return 0;
}
FAKE(cuCtxSynchronize) { return Scripted("cuCtxSynchronize"); }
FAKE(cuMemAlloc_v2, Address* address, size_t bytes) {
  if (const int code = Scripted("cuMemAlloc"); code != 0) return code;
  *address = reinterpret_cast<Address>(calloc(bytes + 4096, 1));
  allocated[*address] = bytes;
  return 0;
}
FAKE(cuMemFree_v2, Address address) {
  allocated.erase(address);
  free(reinterpret_cast<void*>(address));
  return 0;
}
FAKE(cuMemAllocAsync, Address* address, size_t bytes, void*) {
  return cuMemAlloc_v2(address, bytes);
}
FAKE(cuMemFreeAsync, Address address, void*) { return cuMemFree_v2(address); }
FAKE(cuPointerGetAttribute, void* value, int, Address address) {
  for (const auto& [base, bytes] : allocated) {
    if (address < base || address >= base + bytes) continue;
    *static_cast<unsigned*>(value) = 2;  // CU_MEMORYTYPE_DEVICE
    return 0;
  }
  return 1;  // CUDA_ERROR_INVALID_VALUE
}
FAKE(cuMemGetInfo_v2, size_t* free_bytes, size_t* total_bytes) {
  *free_bytes = *total_bytes = size_t{1} << 30;
  return 0;
}
FAKE(cuMemHostAlloc, void** memory, size_t bytes, unsigned) {
  if (const int code = Scripted("cuMemHostAlloc"); code != 0) return code;
  *memory = malloc(bytes);
  return 0;
}
FAKE(cuMemFreeHost, void* memory) {
  free(memory);
  return 0;
}
FAKE(cuMemcpyHtoDAsync_v2, Address to, const void* from, size_t bytes,
     void* stream) {
  Log("send", stream);
  memcpy(reinterpret_cast<void*>(to), from, bytes);
  return Scripted("cuMemcpyHtoDAsync");
}
FAKE(cuMemcpyHtoD_v2, Address to, const void* from, size_t bytes) {
  memcpy(reinterpret_cast<void*>(to), from, bytes);
  return Scripted("cuMemcpyHtoD");
}
FAKE(cuMemcpyDtoH_v2, void* to, Address from, size_t bytes) {
  bytes_read += static_cast<long long>(bytes);
  memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return Scripted("cuMemcpyDtoH");
}
FAKE(cuMemcpyDtoDAsync_v2, Address to, Address from, size_t bytes,
     void* stream) {
  Log("copy", stream);
  memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from),
         bytes);
  fake.now_ns += kLaunchNs;
  return 0;
}
FAKE(cuMemsetD8Async, Address to, unsigned char value, size_t bytes, void*) {
  memset(reinterpret_cast<void*>(to), value, bytes);
  return 0;
}
FAKE(cuMemsetD16Async, Address to, unsigned short value, size_t count, void*) {
  for (size_t i = 0; i < count; ++i) {
    reinterpret_cast<unsigned short*>(to)[i] = value;
  }
  return 0;
}
FAKE(cuMemsetD32Async, Address to, unsigned value, size_t count, void*) {
  for (size_t i = 0; i < count; ++i) {
    reinterpret_cast<unsigned*>(to)[i] = value;
  }
  return 0;
}
FAKE(cuModuleLoadData, void** module, const void*) {
  *module = &fake;
  ++loaded;
  return Scripted("cuModuleLoadData");
}
FAKE(cuModuleUnload, void*) {
  --loaded;
  return current_context == nullptr ? 201 : 0;
}
FAKE(cuModuleGetFunction, void** function, void*, const char* name) {
  // Names live as long as the process; each module has its own.
  static auto& mutex = *new std::mutex();
  static auto& names = *new std::list<std::string>();
  const std::lock_guard<std::mutex> lock(mutex);
  *function = &names.emplace_back(name)[0];
  return Scripted("cuModuleGetFunction");
}
FAKE(cuFuncGetAttribute, int* value, int, void*) {
  *value = 1;
  return 0;
}
FAKE(cuFuncSetAttribute, void* function, int attribute, int value) {
  if (attribute == 8) dynamic_shared[function] = value;
  return Scripted("cuFuncSetAttribute");
}
FAKE(cuLaunchKernel, void* function, unsigned grid_x, unsigned grid_y, unsigned,
     unsigned block_x, unsigned, unsigned, unsigned shared, void* stream,
     void** parameters, void**) {
  if (const int code = Scripted("cuLaunchKernel"); code != 0) return code;
  // 48 KiB need no attribute.
  if (shared > std::max(48u << 10, dynamic_shared[function])) return 1;
  ++launches[stream];
  std::function<void()> kernel = [] {};
  if (strcmp(static_cast<const char*>(function), "map") == 0) {
    kernel = [x = *static_cast<float**>(parameters[0]),
              y = *static_cast<float**>(parameters[1]),
              count = 4 * *static_cast<long long*>(parameters[2])] {
      for (long long i = 0; i < count; ++i) y[i] = std::max(x[i], 0.0f);
    };
  }
  if (fake.capturing) {
    fake.captured.push_back(
        {kernel, function, grid_x, grid_y, block_x, shared});
    return 0;
  }
  fake.now_ns += kLaunchNs;
  kernel();
  if (strcmp(static_cast<const char*>(function), "differs") == 0) {
    const auto at = [&](int i) {
      return *static_cast<Address*>(parameters[i]);
    };
    if (memcmp(reinterpret_cast<void*>(at(0)), reinterpret_cast<void*>(at(1)),
               at(2)) != 0) {
      *reinterpret_cast<unsigned*>(at(3)) = 1;
    }
    return 0;
  }
  if (strcmp(static_cast<const char*>(function), "repeat") == 0) {
    const Address first = *static_cast<Address*>(parameters[0]);
    const Address bytes = *static_cast<Address*>(parameters[1]);
    for (Address time = 1; time <= grid_y; ++time) {
      memcpy(reinterpret_cast<void*>(first + time * bytes),
             reinterpret_cast<void*>(first), bytes);
    }
    return 0;
  }
  if (strcmp(static_cast<const char*>(function), "turn") == 0) {
    const auto at = [&](int i) {
      return *static_cast<Address*>(parameters[i]);
    };
    for (Address row = 0; row < at(2); ++row) {
      for (Address column = 0; column < at(3); ++column) {
        memcpy(reinterpret_cast<char*>(at(1)) + (column * at(2) + row) * at(4),
               reinterpret_cast<char*>(at(0)) + (row * at(3) + column) * at(4),
               at(4));
      }
    }
    return 0;
  }
  if (strcmp(static_cast<const char*>(function), "stray") == 0) {
    const auto at = [&](int i) {
      return *static_cast<Address*>(parameters[i]);
    };
    const auto* guard = reinterpret_cast<const unsigned char*>(at(0));
    for (Address i = 0; i < at(1); ++i) {
      if (guard[i] != 0xff) *reinterpret_cast<unsigned*>(at(2)) = 1;
    }
    return 0;
  }
  if (strcmp(static_cast<const char*>(function), "project") == 0) {
    // The elements are bf16.
    const auto at = [&](int i) {
      return *static_cast<Address*>(parameters[i]);
    };
    const auto number = [&](int i) {
      return *static_cast<double*>(parameters[i]);
    };
    const auto* element = reinterpret_cast<const unsigned short*>(at(0));
    const auto* signs = reinterpret_cast<const unsigned short*>(at(3));
    auto* sums = reinterpret_cast<double*>(at(6));
    for (unsigned row = 0; row < grid_x; ++row, sums += 17) {
      for (Address column = 0; column < at(2); ++column) {
        const unsigned bits = static_cast<unsigned>(*element++) << 16;
        float value;
        memcpy(&value, &bits, sizeof(value));
        for (int s = 0; s < 16; ++s) {
          sums[s] += (signs[column] >> s & 1) != 0 ? value : -value;
        }
        const double allowed = number(4) + number(5) * fabs(value);
        sums[16] += allowed * allowed;
      }
    }
    return 0;
  }
  if (strcmp(static_cast<const char*>(function), "overrun") == 0) {
    const Address operand = *static_cast<Address*>(parameters[0]);
    for (const auto& [base, bytes] : allocated) {
      if (operand < base || operand >= base + bytes) continue;
      // The guard zone lies at the end of the allocation.
      reinterpret_cast<char*>(base)[bytes - 1] = 0;
    }
  }
  return 0;
}
FAKE(cuStreamCreate, void** stream, unsigned) {
  *stream = new char();
  return 0;
}
FAKE(cuStreamDestroy_v2, void* stream) {
  delete static_cast<char*>(stream);
  return 0;
}
FAKE(cuStreamSynchronize, void*) { return Scripted("cuStreamSynchronize"); }
FAKE(cuStreamBeginCapture_v2, void*, int) {
  fake.capturing = true;
  fake.captured.clear();
  return 0;
}
FAKE(cuStreamEndCapture, void*, void** graph) {
  fake.capturing = false;
  *graph = new Nodes(fake.captured);
  return 0;
}
FAKE(cuGraphInstantiateWithFlags, void** exec, void* graph,
     unsigned long long) {
  *exec = new Nodes(*static_cast<Nodes*>(graph));
  return Scripted("cuGraphInstantiate");
}
FAKE(cuGraphLaunch, void* exec, void*) {
  for (const Node& node : *static_cast<Nodes*>(exec)) {
    fake.now_ns += kLaunchNs;
    node.run();
  }
  return 0;
}
FAKE(cuGraphDestroy, void* graph) {
  delete static_cast<Nodes*>(graph);
  return 0;
}
FAKE(cuGraphExecDestroy, void* exec) {
  delete static_cast<Nodes*>(exec);
  return 0;
}
FAKE(cuTensorMapEncodeTiled, void*, int, unsigned, void*, const void*,
     const void*, const void*, const void*, int, int, int, int) {
  return Scripted("cuTensorMapEncodeTiled");
}
FAKE(cuTensorMapEncodeIm2col, void*, int, unsigned, void*, const void*,
     const void*, const void*, const void*, unsigned, unsigned, const void*,
     int, int, int, int) {
  return Scripted("cuTensorMapEncodeIm2col");
}
FAKE(cuGraphGetNodes, void* graph, void** nodes, size_t* count) {
  auto& all = *static_cast<Nodes*>(graph);
  for (size_t i = 0; nodes != nullptr && i < all.size(); ++i)
    nodes[i] = &all[i];
  *count = all.size();
  return Scripted("cuGraphGetNodes");
}
FAKE(cuGraphNodeGetType, void*, int* type) {
  *type = 0;  // CU_GRAPH_NODE_TYPE_KERNEL
  return 0;
}
FAKE(cuGraphKernelNodeGetParams_v2, void* node, void* parameters) {
  struct Parameters {
    void* function;
    unsigned grid[3], block[3], shared_bytes;
  };
  const Node& from = *static_cast<Node*>(node);
  *static_cast<Parameters*>(parameters) = {from.function,
                                           {from.grid_x, from.grid_y, 1},
                                           {from.block_x, 1, 1},
                                           from.shared_bytes};
  return 0;
}
FAKE(cuKernelGetFunction, void** function, void* kernel) {
  *function = kernel;
  return 0;
}
FAKE(cuOccupancyMaxActiveBlocksPerMultiprocessor, int* blocks, void*,
     int threads, size_t) {
  *blocks = 2048 / threads;
  return Scripted("cuOccupancyMaxActiveBlocksPerMultiprocessor");
}
FAKE(cuMemGetAllocationGranularity, size_t* bytes, const void*, int) {
  *bytes = 64 << 10;
  return Scripted("cuMemGetAllocationGranularity");
}
FAKE(cuMemAddressReserve, Address* address, size_t bytes, size_t, Address,
     unsigned long long) {
  void* const reserved =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (reserved == MAP_FAILED) return 2;
  *address = reinterpret_cast<Address>(reserved);
  ++mappings;
  return Scripted("cuMemAddressReserve");
}
FAKE(cuMemAddressFree, Address address, size_t bytes) {
  --mappings;
  return munmap(reinterpret_cast<void*>(address), bytes);
}
FAKE(cuMemCreate, unsigned long long* memory, size_t bytes, const void*,
     unsigned long long) {
  if (const int code = Scripted("cuMemCreate"); code != 0) return code;
  const int file = memfd_create("granule", 0);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return 2;
  *memory = static_cast<unsigned long long>(file);
  ++mappings;
  return 0;
}
FAKE(cuMemRelease, unsigned long long memory) {
  --mappings;
  return close(static_cast<int>(memory));
}
FAKE(cuMemMap, Address address, size_t bytes, size_t offset,
     unsigned long long memory, unsigned long long) {
  if (const int code = Scripted("cuMemMap"); code != 0) return code;
  void* const mapped = mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
                            MAP_SHARED | MAP_FIXED, static_cast<int>(memory),
                            static_cast<off_t>(offset));
  return mapped == MAP_FAILED ? 1 : 0;
}
FAKE(cuMemUnmap, Address address, size_t bytes) {
  return mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED;
}
FAKE(cuMemSetAccess, Address address, size_t bytes, const void*, size_t) {
  if (const int code = Scripted("cuMemSetAccess"); code != 0) return code;
  return mprotect(reinterpret_cast<void*>(address), bytes,
                  PROT_READ | PROT_WRITE);
}
FAKE(cuStreamWaitEvent, void* stream, void* event, unsigned) {
  Log("wait", stream, event);
  return Scripted("cuStreamWaitEvent");
}
FAKE(cuEventCreate, void** event, unsigned) {
  *event = new long long(0);
  return 0;
}
FAKE(cuEventDestroy_v2, void* event) {
  delete static_cast<long long*>(event);
  return 0;
}
FAKE(cuEventRecord, void* event, void* stream) {
  Log("record", stream, event);
  *static_cast<long long*>(event) = fake.now_ns;
  return 0;
}
FAKE(cuEventSynchronize, void* event) {
  Log("await", nullptr, event);
  return 0;
}
FAKE(cuEventElapsedTime, float* milliseconds, void* start, void* end) {
  *milliseconds = static_cast<float>(*static_cast<long long*>(end) -
                                     *static_cast<long long*>(start)) *
                  1e-6f;
  return 0;
}

// The calls so far that order what streams do, a line each; forgets them.
extern "C" const char* FakeOrder();
extern "C" const char* FakeOrder() {
  static std::string told;
  told = std::exchange(order, "");
  return told.c_str();
}
FAKE(FakeLaunches, void* stream) { return launches[stream]; }
FAKE(FakeModules) { return loaded; }
FAKE(FakeMappings) { return mappings; }
FAKE(FakeBytesRead) { return static_cast<int>(bytes_read); }

FAKE(nvmlInit_v2) { return 0; }
FAKE(nvmlDeviceGetHandleByPciBusId_v2, const char*, void** device) {
  *device = &fake;
  return 0;
}
FAKE(nvmlDeviceGetClockInfo, void*, int, unsigned* mhz) {
  *mhz = 1980;
  return 0;
}
FAKE(nvmlDeviceGetCurrentClocksThrottleReasons, void*,
     unsigned long long* reasons) {
  *reasons = Scripted("reasons");
  return 0;
}
FAKE(nvmlDeviceGetTotalEnergyConsumption, void*,
     unsigned long long* millijoules) {
  if (Scripted("watts") == 0) return 3;  // NVML_ERROR_NOT_SUPPORTED
  *millijoules = static_cast<unsigned long long>(fake.now_ns) *
                 static_cast<unsigned long long>(Scripted("watts")) / 1'000'000;
  return 0;
}
FAKE(nvmlDeviceGetFieldValues, void*, int count, void* values) {
  struct FieldValue {
    unsigned field, scope;
    long long timestamp, latency_us;
    int type, result;
    unsigned long long value;
  };
  auto* const value = static_cast<FieldValue*>(values);
  value->result = Scripted("watts") == 0 || count != 1 ? 3 : 0;
  value->type = 1;  // unsigned int
  value->value = 1000ull * static_cast<unsigned>(Scripted("watts")) +
                 (value->field == 185 ? 1 : 0);
  return 0;
}
FAKE(nvmlDeviceGetEnforcedPowerLimit, void*, unsigned* milliwatts) {
  *milliwatts = 700'000;
  return 0;
}
FAKE(nvmlDeviceGetTemperature, void*, int, unsigned* celsius) {
  *celsius = 41;
  return 0;
}
FAKE(nvmlDeviceGetComputeRunningProcesses_v3, void*, unsigned* count,
     void* infos) {
  struct Info {
    unsigned pid;
    unsigned long long memory_bytes;
    unsigned gpu_instance, compute_instance;
  };
  auto* const info = static_cast<Info*>(infos);
  info[0].pid = static_cast<unsigned>(getpid());
  info[1].pid = static_cast<unsigned>(Scripted("process"));
  *count = info[1].pid == 0 ? 1 : 2;
  return 0;
}
FAKE(nvmlDeviceGetProcessUtilization, void*, void* samples, unsigned* count,
     unsigned long long) {
  struct Sample {
    unsigned pid;
    unsigned long long unix_us;
    unsigned multiprocessors, memory, encoder, decoder;
  };
  const int busy = Scripted("busy");
  if (busy == 0) return 3;  // NVML_ERROR_NOT_SUPPORTED
  if (busy < 0) return 6;   // NVML_ERROR_NOT_FOUND
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  *static_cast<Sample*>(samples) = {
      static_cast<unsigned>(Scripted("process")),
      static_cast<unsigned long long>(
          std::chrono::duration_cast<std::chrono::microseconds>(now).count()),
      static_cast<unsigned>(busy),
      1,
      0,
      0};
  *count = 1;
  return 0;
}
