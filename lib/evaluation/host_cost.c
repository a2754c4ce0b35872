/* What a call of the library on a GPU costs the host beyond a launch by the
 * driver: the fastest of 21 batches of 256 calls, with an idle GPU before each
 * batch, so that no call waits for room in the stream's queue.
 *
 *   cc -O2 lib/evaluation/host_cost.c -Iliboptrail/include -Lliboptrail/lib \
 *     -Wl,-rpath,$PWD/liboptrail/lib -loptrail -ldl -o host_cost
 *   ./host_cost "softmax rows=512,cols=384/bf16" "relu n=1000/f16"
 */

#define _POSIX_C_SOURCE 200809L

#include <dlfcn.h>
#include <optrail.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kBatches = 21, kCalls = 256, kMaxOperands = 16 };

/* The part of the driver's interface that is used here. */
typedef int (*cu_init)(unsigned);
typedef int (*cu_device_get)(int*, int);
typedef int (*cu_primary_retain)(void**, int);
typedef int (*cu_set_current)(void*);
typedef int (*cu_stream_create)(void**, unsigned);
typedef int (*cu_synchronize)(void*);
typedef int (*cu_allocate)(unsigned long long*, size_t);
typedef int (*cu_module_load)(void**, const void*);
typedef int (*cu_get_function)(void**, void*, const char*);
typedef int (*cu_launch)(void*, unsigned, unsigned, unsigned, unsigned,
                         unsigned, unsigned, unsigned, void*, void**, void**);

static void* driver;
static void* stream;
static cu_synchronize synchronize;

static void* symbol(const char* name) {
  void* found = dlsym(driver, name);
  if (found == NULL) {
    fprintf(stderr, "host_cost: the driver has no %s\n", name);
    exit(1);
  }
  return found;
}

static void must(int code, const char* what) {
  if (code == 0) return;
  fprintf(stderr, "host_cost: %s failed with code %d%s%s\n", what, code,
          *optrail_message() ? ": " : "", optrail_message());
  exit(1);
}

static double now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e9 + time.tv_nsec;
}

/* Host time of one call, in nanoseconds. */
static double cost_ns(int (*call)(void*), void* argument) {
  double best = 1e18;
  for (int batch = 0; batch < kBatches; ++batch) {
    must(synchronize(stream), "cuStreamSynchronize");
    const double start = now_ns();
    for (int i = 0; i < kCalls; ++i) must(call(argument), "a call");
    const double took = (now_ns() - start) / kCalls;
    if (took < best) best = took;
  }
  must(synchronize(stream), "cuStreamSynchronize");
  return best;
}

struct empty_kernel {
  cu_launch launch;
  void* function;
};

static const char kEmptyPtx[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry empty(.param .u64 a, .param .u64 b) { ret; }\n";

static int launch_empty(void* argument) {
  const struct empty_kernel* kernel = argument;
  unsigned long long a = 0, b = 0;
  void* parameters[] = {&a, &b};
  return kernel->launch(kernel->function, 1, 1, 1, 32, 1, 1, 0, stream,
                        parameters, NULL);
}

struct planned {
  optrail_plan* plan;
  optrail_call call;
};

static int run_plan(void* argument) {
  const struct planned* planned = argument;
  return optrail_run(planned->plan, &planned->call);
}

int main(int argc, char** argv) {
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) {
    fprintf(stderr, "unsupported here: no driver of NVIDIA: %s\n", dlerror());
    return 3;
  }
  int device = 0;
  void *context = NULL, *module = NULL;
  struct empty_kernel empty;
  must(((cu_init)symbol("cuInit"))(0), "cuInit");
  must(((cu_device_get)symbol("cuDeviceGet"))(&device, 0), "cuDeviceGet");
  must(((cu_primary_retain)symbol("cuDevicePrimaryCtxRetain"))(&context, device),
       "cuDevicePrimaryCtxRetain");
  must(((cu_set_current)symbol("cuCtxSetCurrent"))(context), "cuCtxSetCurrent");
  must(((cu_stream_create)symbol("cuStreamCreate"))(&stream, 1),
       "cuStreamCreate");
  synchronize = (cu_synchronize)symbol("cuStreamSynchronize");
  must(((cu_module_load)symbol("cuModuleLoadData"))(&module, kEmptyPtx),
       "cuModuleLoadData");
  must(((cu_get_function)symbol("cuModuleGetFunction"))(&empty.function, module,
                                                        "empty"),
       "cuModuleGetFunction");
  empty.launch = (cu_launch)symbol("cuLaunchKernel");
  const cu_allocate allocate = (cu_allocate)symbol("cuMemAlloc_v2");

  printf("%-40s %12s %12s %12s\n", "operator and shape", "call ns", "launch ns",
         "beyond ns");
  for (int i = 1; i < argc; ++i) {
    char op[64];
    const char* space = strchr(argv[i], ' ');
    if (space == NULL || (size_t)(space - argv[i]) >= sizeof(op)) {
      fprintf(stderr, "host_cost: \"%s\": expected \"OPERATOR SHAPE\"\n",
              argv[i]);
      return 2;
    }
    snprintf(op, sizeof(op), "%.*s", (int)(space - argv[i]), argv[i]);
    optrail_problem problem = OPTRAIL_PROBLEM_INIT;
    problem.op = op;
    problem.shape = space + 1;
    problem.device = "cuda";
    optrail_plan_options options = OPTRAIL_PLAN_OPTIONS_INIT;
    options.flags = OPTRAIL_MAY_COMPILE;
    struct planned planned;
    must(optrail_plan_create(NULL, &problem, &options, &planned.plan),
         "optrail_plan_create");
    void* operands[kMaxOperands];
    const size_t count = optrail_plan_operand_count(planned.plan);
    for (size_t j = 0; j < count && j < kMaxOperands; ++j) {
      optrail_operand operand = OPTRAIL_OPERAND_INIT;
      unsigned long long address = 0;
      must(optrail_shape_operand(op, problem.shape, j, &operand, NULL),
           "optrail_shape_operand");
      must(allocate(&address, operand.bytes), "cuMemAlloc");
      operands[j] = (void*)(uintptr_t)address;
    }
    planned.call = (optrail_call)OPTRAIL_CALL_INIT;
    planned.call.operands = operands;
    planned.call.operand_count = count;
    planned.call.stream = stream;
    const size_t workspace = optrail_plan_workspace_bytes(planned.plan);
    if (workspace > 0) {
      unsigned long long address = 0;
      must(allocate(&address, workspace), "cuMemAlloc");
      planned.call.workspace = (void*)(uintptr_t)address;
      planned.call.workspace_bytes = workspace;
    }
    /* In turns, twice, so that a change of clocks shows. */
    for (int turn = 0; turn < 2; ++turn) {
      const double call = cost_ns(run_plan, &planned);
      const double launch = cost_ns(launch_empty, &empty);
      printf("%-40s %12.0f %12.0f %12.0f\n", argv[i], call, launch,
             call - launch);
    }
    optrail_plan_destroy(planned.plan);
  }
  return 0;
}
