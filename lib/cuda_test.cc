// Plans on CUDA as a program with a context and streams of its own makes them,
// over a driver without a GPU (ops/device/cuda/testing/fake_driver.cc), whose
// memory is the host's and whose "map" computes relu. Kernels are compiled by
// NVRTC; a machine without it says so.

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/optrail.h"
#include "lib/test_handles.h"

namespace optrail::c_program {
namespace {

using ::testing::HasSubstr;

// What this program calls of its driver: the one that the library loads.
template <class... Arguments>
int Cuda(const char* name, Arguments... arguments) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  EXPECT_NE(driver, nullptr) << dlerror();
  auto* const function =
      reinterpret_cast<int (*)(Arguments...)>(dlsym(driver, name));
  EXPECT_NE(function, nullptr) << name;
  return function(arguments...);
}

class CudaPlan : public testing::Test {
 protected:
  static constexpr int kCount = 64;
  static constexpr char kShape[] = "n=64/f32";

  void SetUp() override {
    ASSERT_EQ(Cuda("cuInit", 0u), 0);
    ASSERT_EQ(Cuda("cuDevicePrimaryCtxRetain", &context_, 0), 0);
    ASSERT_EQ(Cuda("cuCtxSetCurrent", context_), 0);
    x_ = Memory(kCount * sizeof(float));
    y_ = Memory(kCount * sizeof(float));
    const std::vector<float> values = Values(kCount, 1);
    std::memcpy(x_, values.data(), kCount * sizeof(float));
    operands_[0] = x_;
    operands_[1] = y_;
    options_.flags = OPTRAIL_MAY_COMPILE;
  }
  void TearDown() override {
    unsetenv("OPTRAIL_FAKE_CUDA");
    for (const uint64_t address : allocated_) Cuda("cuMemFree_v2", address);
    Cuda("cuCtxSetCurrent", static_cast<void*>(nullptr));
  }

  float* Memory(size_t bytes) {
    uint64_t address = 0;
    EXPECT_EQ(Cuda("cuMemAlloc_v2", &address, bytes), 0);
    allocated_.push_back(address);
    return reinterpret_cast<float*>(address);
  }
  optrail_problem Problem(const char* op = "relu",
                          const char* shape = kShape) const {
    optrail_problem problem = ProblemOf(op, shape);
    problem.device = "cuda";
    return problem;
  }
  optrail_call Call() {
    optrail_call call = OPTRAIL_CALL_INIT;
    call.operands = operands_;
    call.operand_count = 2;
    call.stream = &stream_;
    return call;
  }
  // Null where there is no compiler.
  optrail_plan* Make(const optrail_problem& problem) {
    optrail_plan* plan = nullptr;
    const optrail_status status =
        optrail_plan_create(nullptr, &problem, &options_, &plan);
    if (std::strstr(optrail_message(), "libnvrtc") == nullptr) {
      EXPECT_EQ(status, OPTRAIL_OK) << optrail_message();
    }
    return plan;
  }
  void ExpectRelu() {
    for (int i = 0; i < kCount; ++i) {
      EXPECT_EQ(y_[i], x_[i] > 0 ? x_[i] : 0) << i;
    }
  }

  void* context_ = nullptr;
  int stream_ = 0;  // its address is the stream
  float *x_ = nullptr, *y_ = nullptr;
  void* operands_[2];
  optrail_plan_options options_ = OPTRAIL_PLAN_OPTIONS_INIT;
  std::vector<uint64_t> allocated_;
};
constexpr char CudaPlan::kShape[];

#define OPTRAIL_PLAN_OR_SKIP(name, problem)               \
  optrail_plan* const name = Make(problem);               \
  if (name == nullptr) GTEST_SKIP() << optrail_message(); \
  const struct Destroyed_##name {                         \
    optrail_plan* plan;                                   \
    ~Destroyed_##name() { optrail_plan_destroy(plan); }   \
  } destroyed_##name {                                    \
    name                                                  \
  }

TEST_F(CudaPlan, RunsOnTheCallersStream) {
  OPTRAIL_PLAN_OR_SKIP(plan, Problem());
  const optrail_call call = Call();
  const int before = Cuda("FakeLaunches", call.stream);
  ASSERT_EQ(optrail_run(plan, &call), OPTRAIL_OK) << optrail_message();
  EXPECT_EQ(Cuda("FakeLaunches", call.stream), before + 1);
  ExpectRelu();
  optrail_call by_default = Call();
  by_default.stream = nullptr;
  EXPECT_EQ(optrail_run(plan, &by_default), OPTRAIL_OK) << optrail_message();
}

TEST_F(CudaPlan, IsCapturedIntoAGraph) {
  OPTRAIL_PLAN_OR_SKIP(plan, Problem());
  const optrail_call call = Call();
  std::memset(y_, 0x5a, kCount * sizeof(float));
  const float untouched = y_[0];
  void *graph = nullptr, *exec = nullptr;
  ASSERT_EQ(Cuda("cuStreamBeginCapture_v2", call.stream, 1), 0);
  ASSERT_EQ(optrail_run(plan, &call), OPTRAIL_OK) << optrail_message();
  ASSERT_EQ(Cuda("cuStreamEndCapture", call.stream, &graph), 0);
  EXPECT_EQ(y_[0], untouched);
  ASSERT_EQ(Cuda("cuGraphInstantiateWithFlags", &exec, graph, 0ull), 0);
  for (int i = 0; i < 3; ++i) {
    y_[0] = untouched;
    ASSERT_EQ(Cuda("cuGraphLaunch", exec, call.stream), 0);
    ExpectRelu();
  }
  Cuda("cuGraphExecDestroy", exec);
  Cuda("cuGraphDestroy", graph);
}

TEST_F(CudaPlan, UnloadsItsCodeInItsContext) {
  const int before = Cuda("FakeModules");
  optrail_plan* const plan = Make(Problem());
  if (plan == nullptr) GTEST_SKIP() << optrail_message();
  EXPECT_EQ(Cuda("FakeModules"), before + 1);
  std::thread([&] { optrail_plan_destroy(plan); }).join();
  EXPECT_EQ(Cuda("FakeModules"), before);
}

TEST_F(CudaPlan, NeedsItsContext) {
  OPTRAIL_PLAN_OR_SKIP(plan, Problem());
  const optrail_call call = Call();
  std::thread([&] {
    EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_FAILED_PRECONDITION);
    EXPECT_THAT(optrail_message(), HasSubstr("no CUDA context is current"));
    int other = 0;
    Cuda("cuCtxSetCurrent", static_cast<void*>(&other));
    EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_FAILED_PRECONDITION);
    EXPECT_THAT(optrail_message(), HasSubstr("is not the one in which"));
    Cuda("cuCtxSetCurrent", context_);
    EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_OK) << optrail_message();
    Cuda("cuCtxSetCurrent", static_cast<void*>(nullptr));
    const optrail_problem problem = Problem();
    optrail_plan* made = nullptr;
    EXPECT_EQ(optrail_plan_create(nullptr, &problem, &options_, &made),
              OPTRAIL_FAILED_PRECONDITION);
    EXPECT_THAT(optrail_message(), HasSubstr("cuCtxSetCurrent()"));
  }).join();
}

TEST_F(CudaPlan, IsRefusedInAChildOfFork) {
  OPTRAIL_PLAN_OR_SKIP(plan, Problem());
  const optrail_call call = Call();
  const pid_t child = fork();
  if (child == 0) {
    const bool refused =
        optrail_run(plan, &call) == OPTRAIL_FAILED_PRECONDITION &&
        std::strstr(optrail_message(), "fork()") != nullptr;
    optrail_plan_destroy(plan);
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(CudaPlan, BadCallsAreRefused) {
  OPTRAIL_PLAN_OR_SKIP(plan, Problem());
  const auto refused = [&](const optrail_call& call, const char* message) {
    EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_INVALID_ARGUMENT);
    EXPECT_THAT(optrail_message(), HasSubstr(message));
  };
  std::vector<float> host(kCount);
  optrail_call call = Call();
  operands_[0] = host.data();
  refused(call, "x is at");
  EXPECT_THAT(optrail_message(), HasSubstr("memory of the host"));
  operands_[0] = nullptr;
  refused(call, "operand 0 (x) is NULL");
  operands_[0] = y_ + 1;
  refused(call, "overlaps");
  operands_[0] = x_;
  const Threads threads(2);
  call.threads = threads;
  refused(call, "brings threads");
  call = Call();
  call.flags = 8;
  refused(call, "call->flags is 8");
  call = Call();
  // The driver that the test has aligns less than others.
  call.workspace =
      reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(x_) | 255) + 1 + 64);
  refused(call, "multiple of 256");

  optrail_plan* made = nullptr;
  optrail_problem problem = Problem();
  problem.threads = 4;
  EXPECT_EQ(optrail_plan_create(nullptr, &problem, &options_, &made),
            OPTRAIL_INVALID_ARGUMENT);
  EXPECT_THAT(optrail_message(), HasSubstr("problem->threads is 4"));
  problem.threads = 1;
  optrail_allocator allocator = {
      nullptr, [](void*, size_t, size_t) -> void* { return nullptr; },
      [](void*, void*, size_t) {}};
  options_.allocator = &allocator;
  EXPECT_EQ(optrail_plan_create(nullptr, &problem, &options_, &made),
            OPTRAIL_INVALID_ARGUMENT);
  EXPECT_THAT(optrail_message(), HasSubstr("call->workspace"));
}

TEST_F(CudaPlan, CompilesOnlyWhereItMay) {
  { OPTRAIL_PLAN_OR_SKIP(plan, Problem()); }
  const std::string cache = testing::TempDir() + "/compiled";
  options_.compile_cache = cache.c_str();
  options_.flags = 0;
  const optrail_problem problem = Problem();
  optrail_plan* plan = nullptr;
  EXPECT_EQ(optrail_plan_create(nullptr, &problem, &options_, &plan),
            OPTRAIL_FAILED_PRECONDITION);
  EXPECT_THAT(optrail_message(), HasSubstr("may not compile"));
  options_.flags = OPTRAIL_MAY_COMPILE;
  ASSERT_EQ(optrail_plan_create(nullptr, &problem, &options_, &plan),
            OPTRAIL_OK);
  optrail_plan_destroy(plan);
  options_.flags = 0;
  plan = nullptr;
  EXPECT_EQ(optrail_plan_create(nullptr, &problem, &options_, &plan),
            OPTRAIL_OK)
      << optrail_message();
  optrail_plan_destroy(plan);
}

TEST_F(CudaPlan, ReportsALaunchThatFails) {
  OPTRAIL_PLAN_OR_SKIP(plan, Problem());
  const optrail_call call = Call();
  setenv("OPTRAIL_FAKE_CUDA", "cuLaunchKernel=700", 1);
  EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_INTERNAL);
  EXPECT_THAT(optrail_message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
}

// A sum that several blocks share, which count each other in a workspace.
TEST_F(CudaPlan, AWorkspaceIsZeroedUnlessItIsClean) {
  const optrail_problem problem = Problem("sum", "rows=4,cols=65536/f32");
  std::string config;
  {
    OPTRAIL_PLAN_OR_SKIP(plan, problem);
    optrail_choice choice = OPTRAIL_CHOICE_INIT;
    ASSERT_EQ(optrail_plan_choice(plan, &choice), OPTRAIL_OK);
    for (std::string rest = choice.config; !rest.empty();) {
      const size_t end = std::min(rest.find(','), rest.size());
      const std::string knob = rest.substr(0, rest.find('='));
      const std::string value = rest.substr(0, end);
      config +=
          (config.empty() ? "" : ",") + (knob == "parts"     ? "parts=4"
                                         : knob == "cluster" ? "cluster=false"
                                                             : value);
      rest = rest.substr(std::min(end + 1, rest.size()));
    }
  }
  options_.config = config.c_str();
  OPTRAIL_PLAN_OR_SKIP(plan, problem);
  const size_t bytes = optrail_plan_workspace_bytes(plan);
  ASSERT_GT(bytes, 0u) << config;
  operands_[0] = Memory(4 * 65536 * sizeof(float));
  operands_[1] = Memory(65536 * sizeof(float));
  optrail_call call = Call();
  EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_OK) << optrail_message();

  char* workspace = reinterpret_cast<char*>(Memory(bytes + 256));
  while (reinterpret_cast<uintptr_t>(workspace) % 256 != 0) ++workspace;
  call.workspace = workspace;
  call.workspace_bytes = bytes;
  workspace[0] = 7;
  call.flags = OPTRAIL_WORKSPACE_IS_CLEAN;
  EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_OK) << optrail_message();
  EXPECT_EQ(workspace[0], 7);
  call.flags = 0;
  EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_OK) << optrail_message();
  EXPECT_EQ(workspace[0], 0);
  call.workspace_bytes = bytes - 1;
  EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_INVALID_ARGUMENT);

  call = Call();
  setenv("OPTRAIL_FAKE_CUDA", "cuMemAlloc=2", 1);
  EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_OUT_OF_MEMORY);
}

TEST_F(CudaPlan, LeavesTheEnvironmentAlone) {
  optrail_plan* const plan = Make(Problem());
  EXPECT_EQ(getenv("CUDA_DEVICE_MAX_CONNECTIONS"), nullptr);
  optrail_plan_destroy(plan);
}

}  // namespace
}  // namespace optrail::c_program
