// Plans and calls of optrail.h as a C program makes them, linked directly so
// that sanitizers see all of it.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
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
using ::testing::StartsWith;

// A product of 33 x 47 x 29, and calls of it.
class Matmul : public testing::Test {
 protected:
  static constexpr int kM = 33, kN = 47, kK = 29;
  static constexpr char kShape[] = "m=33,n=47,k=29/f32";

  optrail_call CallOf() {
    optrail_call call = OPTRAIL_CALL_INIT;
    call.operands = operands_;
    call.operand_count = 3;
    return call;
  }
  const std::vector<float> a_ = Values(kM * kK, 1), b_ = Values(kK * kN, 2);
  const std::vector<float> expected_ = Product(a_, b_, kM, kN, kK);
  std::vector<float> c_ = std::vector<float>(kM * kN, 7);
  void* operands_[3] = {const_cast<float*>(a_.data()),
                        const_cast<float*>(b_.data()), c_.data()};
};
constexpr char Matmul::kShape[];

TEST_F(Matmul, IsComputed) {
  const Store store;
  const Plan plan(store, ProblemOf("matmul", kShape));
  ASSERT_EQ(optrail_plan_operand_count(plan), 3u);
  optrail_operand operand = OPTRAIL_OPERAND_INIT;
  ASSERT_EQ(optrail_plan_operand(plan, 2, &operand), OPTRAIL_OK);
  EXPECT_EQ(operand.role, OPTRAIL_OUTPUT);
  EXPECT_STREQ(operand.type, "f32");
  ASSERT_EQ(operand.rank, 2);
  EXPECT_EQ(operand.dims[1], kN);
  EXPECT_EQ(operand.bytes, c_.size() * sizeof(float));
  EXPECT_EQ(optrail_plan_operand(plan, 3, &operand), OPTRAIL_INVALID_ARGUMENT);
  const optrail_call call = CallOf();
  ASSERT_EQ(optrail_run(plan, &call), OPTRAIL_OK) << optrail_message();
  ExpectNear(c_, expected_);
}

TEST_F(Matmul, TakesTheCallersWorkspace) {
  const Plan plan(nullptr, ProblemOf("matmul", kShape));
  optrail_call call = CallOf();
  const size_t bytes = optrail_plan_workspace_bytes(plan);
  std::vector<char> memory(bytes + 128, 0x5a);
  char* aligned = memory.data();
  while (reinterpret_cast<uintptr_t>(aligned) % 64 != 0) ++aligned;
  call.workspace = aligned;
  call.workspace_bytes = bytes;
  ASSERT_EQ(optrail_run(plan, &call), OPTRAIL_OK) << optrail_message();
  ExpectNear(c_, expected_);
  call.workspace = aligned + 4;
  EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_INVALID_ARGUMENT);
  EXPECT_THAT(optrail_message(), HasSubstr("multiple of 64"));
  if (bytes == 0) return;
  call.workspace = aligned;
  call.workspace_bytes = bytes - 1;
  EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_INVALID_ARGUMENT);
  EXPECT_THAT(optrail_message(), HasSubstr("workspace_bytes"));
}

TEST_F(Matmul, AWorkspaceOverAnOperandIsRefused) {
  optrail_problem problem = ProblemOf("matmul", "m=512,n=512,k=512/f32");
  const Plan plan(nullptr, problem);
  const size_t bytes = optrail_plan_workspace_bytes(plan);
  ASSERT_GT(bytes, 0u) << "the test needs a kernel with a workspace";
  const size_t room = std::max(bytes, size_t{512 * 512 * 4});
  void* memory[4];
  for (void*& block : memory) {
    block = std::aligned_alloc(64, (room + 63) / 64 * 64);
    std::memset(block, 0, room);
  }
  void* operands[] = {memory[0], memory[1], memory[2]};
  optrail_call call = OPTRAIL_CALL_INIT;
  call.operands = operands;
  call.operand_count = 3;
  call.workspace_bytes = bytes;
  for (int i = 0; i < 3; ++i) {
    call.workspace = memory[i];
    EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_INVALID_ARGUMENT) << i;
    EXPECT_THAT(optrail_message(),
                HasSubstr("overlaps operand " + std::to_string(i)));
  }
  call.workspace = memory[3];
  EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_OK) << optrail_message();
  for (void* block : memory) std::free(block);
}

TEST_F(Matmul, ManyThreadsRunOnePlan) {
  const Plan plan(nullptr, ProblemOf("matmul", kShape, 2));
  const Threads pool(2);
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> results(6);
  for (std::vector<float>& result : results) {
    result.resize(c_.size());
    threads.emplace_back([&] {
      void* operands[] = {operands_[0], operands_[1], result.data()};
      optrail_call call = CallOf();
      call.operands = operands;
      call.threads = pool;
      for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_OK) << optrail_message();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& result : results) {
    ExpectNear(result, expected_);
  }
}

// Threads of a caller's, one for each iteration.
void RunOnThreads(void*, int64_t count, void (*body)(void*, int64_t),
                  void* argument) {
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < count; ++i) {
    threads.emplace_back([=] { body(argument, i); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Threads, OfTheCallerShareOutALoop) {
  const Plan plan(nullptr, ProblemOf("softmax", "rows=64,cols=40/f32", 4));
  const std::vector<float> x = Values(64 * 40, 3);
  std::vector<float> y(x.size());
  void* operands[] = {const_cast<float*>(x.data()), y.data()};
  optrail_call call = OPTRAIL_CALL_INIT;
  call.operands = operands;
  call.operand_count = 2;
  const Threads threads(RunOnThreads, 4);
  call.threads = threads;
  ASSERT_EQ(optrail_run(plan, &call), OPTRAIL_OK) << optrail_message();
  for (int row = 0; row < 64; ++row) {
    double sum = 0;
    for (int i = 0; i < 40; ++i) sum += std::exp(double{x[row * 40 + i]});
    for (int i = 0; i < 40; ++i) {
      ASSERT_NEAR(y[row * 40 + i], std::exp(double{x[row * 40 + i]}) / sum,
                  1e-6);
    }
  }
}

TEST(Threads, ThatDoNotRunALoopWholeFailTheCall) {
  const Plan plan(nullptr, ProblemOf("softmax", "rows=64,cols=40/f32", 4));
  std::vector<float> x = Values(64 * 40, 3), y(x.size());
  void* operands[] = {x.data(), y.data()};
  optrail_call call = OPTRAIL_CALL_INIT;
  call.operands = operands;
  call.operand_count = 2;
  using Body = void (*)(void*, int64_t);
  const struct {
    optrail_parallel_for parallel_for;
    const char* message;
  } kCases[] = {
      {[](void*, int64_t, Body, void*) {}, "returned after 0 of "},
      {[](void*, int64_t count, Body body, void* argument) {
         for (int64_t i = 1; i < count; ++i) body(argument, i);
       },
       "returned after "},
      {[](void*, int64_t count, Body body, void* argument) {
         for (int64_t i = 0; i < count; ++i) body(argument, 0);
       },
       "not one for each index"},
      {[](void*, int64_t count, Body body, void* argument) {
         for (int64_t i = 0; i < count; ++i) body(argument, i - count);
       },
       "returned after 0 of "},
      {[](void*, int64_t, Body, void*) { throw std::runtime_error("no"); },
       "threw an exception"},
  };
  for (const auto& c : kCases) {
    const Threads threads(c.parallel_for, 4);
    call.threads = threads;
    EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_FAILED_PRECONDITION);
    EXPECT_THAT(optrail_message(), HasSubstr(c.message));
  }
  call.threads = nullptr;
  EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_OK);
}

TEST(Threads, AreAsManyAsThePlanKnows) {
  const Plan plan(nullptr, ProblemOf("softmax", "rows=64,cols=40/f32"));
  std::vector<float> x(64 * 40), y(x.size());
  void* operands[] = {x.data(), y.data()};
  optrail_call call = OPTRAIL_CALL_INIT;
  call.operands = operands;
  call.operand_count = 2;
  const Threads threads(2);
  call.threads = threads;
  EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_INVALID_ARGUMENT);
  EXPECT_THAT(optrail_message(), HasSubstr("made for 1"));
  optrail_threads* none = nullptr;
  EXPECT_EQ(optrail_threads_create(0, &none), OPTRAIL_INVALID_ARGUMENT);
  EXPECT_EQ(optrail_threads_create(100000, &none), OPTRAIL_INVALID_ARGUMENT);
  EXPECT_EQ(optrail_threads_adopt(nullptr, nullptr, 2, &none),
            OPTRAIL_INVALID_ARGUMENT);
}

// 0 if `body` returns true in a child of fork().
int InChild(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST_F(Matmul, AChildOfForkHasPlansButNoThreads) {
#if defined(OPTRAIL_SANITIZED) || defined(__SANITIZE_ADDRESS__) || \
    defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "GCC's sanitizers leave their allocator locked in the child "
                  "of a process with threads; observe_test forks without";
#endif
  const Store store;
  const Plan plan(store, ProblemOf("matmul", kShape, 2));
  auto* const pool = new Threads(2);
  optrail_call call = CallOf();
  call.threads = *pool;
  ASSERT_EQ(optrail_run(plan, &call), OPTRAIL_OK);
  EXPECT_EQ(InChild([&] {
              const bool refused =
                  optrail_run(plan, &call) == OPTRAIL_FAILED_PRECONDITION &&
                  std::strstr(optrail_message(), "fork()") != nullptr;
              delete pool;  // does not wait for threads that are not there
              call.threads = nullptr;
              c_.assign(c_.size(), 0);
              const optrail_problem problem = ProblemOf("matmul", kShape);
              optrail_choice choice = OPTRAIL_CHOICE_INIT;
              return refused && optrail_run(plan, &call) == OPTRAIL_OK &&
                     std::fabs(c_[0] - expected_[0]) < 1e-4f &&
                     optrail_lookup(store, &problem, &choice) == OPTRAIL_OK;
            }),
            0);
  EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_OK);
  delete pool;
}

TEST_F(Matmul, BadCallsAreRefusedAndWriteNothing) {
  const Plan plan(nullptr, ProblemOf("matmul", kShape));
  const auto refused = [&](const optrail_call& call, const char* message) {
    EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_INVALID_ARGUMENT);
    EXPECT_THAT(optrail_message(), HasSubstr(message));
    EXPECT_EQ(c_, std::vector<float>(c_.size(), 7));
  };
  optrail_call call = CallOf();
  call.operand_count = 2;
  refused(call, "has 2 operands, expected 3");
  call = CallOf();
  call.operands = nullptr;
  refused(call, "0 operands, expected 3");
  call = CallOf();
  const size_t bytes[] = {a_.size() * 4, b_.size() * 4, c_.size() * 4 - 4};
  call.operand_bytes = bytes;
  refused(call, "operand 2 (c) has 6200 bytes, expected 6204");
  const auto with = [&](int i, void* address, const char* message) {
    void* operands[] = {operands_[0], operands_[1], operands_[2]};
    operands[i] = address;
    optrail_call changed = CallOf();
    changed.operands = operands;
    refused(changed, message);
  };
  with(0, nullptr, "operand 0 (a) is NULL");
  with(1, static_cast<char*>(operands_[1]) + 2, "multiple of 4 for f32");
  with(0, c_.data() + 1, "overlaps");
  call = OPTRAIL_CALL_INIT;
  call.struct_size = 0;
  refused(call, "struct_size is 0");
  EXPECT_EQ(optrail_run(nullptr, &call), OPTRAIL_INVALID_ARGUMENT);
  EXPECT_EQ(optrail_run(plan, nullptr), OPTRAIL_INVALID_ARGUMENT);
}

TEST(Plans, CompileOnlyWhereTheyMay) {
  optrail_problem problem = ProblemOf("matmul", "m=8,n=8,k=8/f32");
  problem.backend = "plain";
  optrail_plan* plan = nullptr;
  EXPECT_EQ(optrail_plan_create(nullptr, &problem, nullptr, &plan),
            OPTRAIL_FAILED_PRECONDITION);
  EXPECT_THAT(optrail_message(), HasSubstr("may not compile"));
}

TEST(Plans, TakeTheCallersConfig) {
  const std::string config = OtherConfig();
  optrail_plan_options options = OPTRAIL_PLAN_OPTIONS_INIT;
  options.config = config.c_str();
  const Plan plan(nullptr, ProblemOf("softmax", "rows=6,cols=40/f32"),
                  &options);
  optrail_choice choice = OPTRAIL_CHOICE_INIT;
  ASSERT_EQ(optrail_plan_choice(plan, &choice), OPTRAIL_OK);
  EXPECT_EQ(choice.source, OPTRAIL_CALLERS_CONFIG);
  EXPECT_EQ(choice.config, config);
  const optrail_problem problem = ProblemOf("softmax", "rows=6,cols=40/f32");
  optrail_plan* made = nullptr;
  options.config = "rows_per_task=3";
  EXPECT_EQ(optrail_plan_create(nullptr, &problem, &options, &made),
            OPTRAIL_INVALID_ARGUMENT);
}

// Counts what a plan takes and gives back.
struct Counting {
  std::atomic<int64_t> live{0}, taken{0};
  bool refuse = false, misaligned = false;

  optrail_allocator allocator() {
    return {this,
            [](void* context, size_t bytes, size_t alignment) -> void* {
              auto& self = *static_cast<Counting*>(context);
              if (self.refuse) return nullptr;
              ++self.live;
              ++self.taken;
              char* const memory = static_cast<char*>(std::aligned_alloc(
                  alignment, (bytes + 2 * alignment) / alignment * alignment));
              return memory + (self.misaligned ? 4 : 0);
            },
            [](void* context, void* memory, size_t) {
              auto& self = *static_cast<Counting*>(context);
              --self.live;
              std::free(static_cast<char*>(memory) - (self.misaligned ? 4 : 0));
            }};
  }
};

// Linear packs its weights: y = x w + bias.
TEST(Plans, TakeMemoryFromTheCallersAllocator) {
  Counting counting;
  const optrail_allocator allocator = counting.allocator();
  optrail_plan_options options = OPTRAIL_PLAN_OPTIONS_INIT;
  options.allocator = &allocator;
  const optrail_problem problem = ProblemOf("linear", "m=20,n=64,k=48/f32");
  optrail_plan* plan = nullptr;
  ASSERT_EQ(optrail_plan_create(nullptr, &problem, &options, &plan), OPTRAIL_OK)
      << optrail_message();
  const std::vector<float> x = Values(20 * 48, 1), w = Values(48 * 64, 2),
                           bias(64, 0);
  const std::vector<float> expected = Product(x, w, 20, 64, 48);
  std::vector<float> y(20 * 64);
  std::vector<void*> operands;
  for (size_t i = 0; i < optrail_plan_operand_count(plan); ++i) {
    optrail_operand operand = OPTRAIL_OPERAND_INIT;
    ASSERT_EQ(optrail_plan_operand(plan, i, &operand), OPTRAIL_OK);
    const std::string name = operand.name;
    operands.push_back(const_cast<float*>(name == "x"      ? x.data()
                                          : name == "w"    ? w.data()
                                          : name == "bias" ? bias.data()
                                                           : y.data()));
  }
  optrail_call call = OPTRAIL_CALL_INIT;
  call.operands = operands.data();
  call.operand_count = operands.size();
  for (int i = 0; i < 3; ++i) {
    y.assign(y.size(), 7);
    ASSERT_EQ(optrail_run(plan, &call), OPTRAIL_OK) << optrail_message();
    ExpectNear(y, expected);
  }
  const int64_t first = counting.taken;
  const size_t bytes = optrail_plan_packed_bytes(plan);
  EXPECT_EQ(first, (bytes > 0) + (optrail_plan_workspace_bytes(plan) > 0));

  // Packed once by the caller.
  void* const packed = std::aligned_alloc(64, (bytes + 64) / 64 * 64);
  ASSERT_EQ(optrail_pack(plan, &call, packed), OPTRAIL_OK) << optrail_message();
  call.packed = packed;
  call.packed_bytes = bytes;
  y.assign(y.size(), 7);
  ASSERT_EQ(optrail_run(plan, &call), OPTRAIL_OK) << optrail_message();
  ExpectNear(y, expected);
  EXPECT_EQ(counting.taken, first);
  optrail_plan_destroy(plan);
  EXPECT_EQ(counting.live, 0);
  std::free(packed);
}

TEST(Plans, AnAllocatorThatHasNothingFailsTheCall) {
  Counting counting;
  const optrail_allocator allocator = counting.allocator();
  optrail_plan_options options = OPTRAIL_PLAN_OPTIONS_INIT;
  options.allocator = &allocator;
  const Plan plan(nullptr, ProblemOf("linear", "m=20,n=64,k=48/f32"), &options);
  ASSERT_GT(
      optrail_plan_workspace_bytes(plan) + optrail_plan_packed_bytes(plan), 0u);
  std::vector<float> memory(20 * 48 + 48 * 64 + 64 + 20 * 64);
  void* operands[4];
  size_t at = 0;
  for (size_t i = 0; i < 4; ++i) {
    optrail_operand operand = OPTRAIL_OPERAND_INIT;
    ASSERT_EQ(optrail_plan_operand(plan, i, &operand), OPTRAIL_OK);
    operands[i] = memory.data() + at;
    at += operand.bytes / sizeof(float);
  }
  optrail_call call = OPTRAIL_CALL_INIT;
  call.operands = operands;
  call.operand_count = 4;
  counting.refuse = true;
  EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_OUT_OF_MEMORY);
  counting.refuse = false;
  counting.misaligned = true;
  EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_INVALID_ARGUMENT);
  EXPECT_THAT(optrail_message(), HasSubstr("multiple of 64"));
  counting.misaligned = false;
  EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_OK) << optrail_message();
  EXPECT_EQ(optrail_plan_operand_count(nullptr), 0u);
}

TEST(Convolution, IsComputed) {
  const Plan plan(
      nullptr,
      ProblemOf("conv2d", "n=1,h=7,w=6,c=5,k=4,r=3,s=3/padding=1/f32"));
  const std::vector<float> x = Values(7 * 6 * 5, 1),
                           w = Values(3 * 3 * 5 * 4, 2);
  std::vector<float> y(7 * 6 * 4), expected(y.size());
  for (int h = 0; h < 7; ++h) {
    for (int v = 0; v < 6; ++v) {
      for (int k = 0; k < 4; ++k) {
        double sum = 0;
        for (int r = 0; r < 3; ++r) {
          for (int s = 0; s < 3; ++s) {
            const int i = h + r - 1, j = v + s - 1;
            if (i < 0 || i >= 7 || j < 0 || j >= 6) continue;
            for (int c = 0; c < 5; ++c) {
              sum += double{x[(i * 6 + j) * 5 + c]} *
                     w[((r * 3 + s) * 5 + c) * 4 + k];
            }
          }
        }
        expected[(h * 6 + v) * 4 + k] = static_cast<float>(sum);
      }
    }
  }
  void* operands[] = {const_cast<float*>(x.data()),
                      const_cast<float*>(w.data()), y.data()};
  optrail_call call = OPTRAIL_CALL_INIT;
  call.operands = operands;
  call.operand_count = 3;
  ASSERT_EQ(optrail_run(plan, &call), OPTRAIL_OK) << optrail_message();
  ExpectNear(y, expected);
}

TEST(Devices, ThatPlansCannotUseSayWhy) {
  optrail_problem problem = ProblemOf("matmul", "m=8,n=8,k=8/f32");
  problem.device = "cuda";
  optrail_plan* plan = nullptr;
  EXPECT_EQ(optrail_plan_create(nullptr, &problem, nullptr, &plan),
            OPTRAIL_UNSUPPORTED);
  EXPECT_THAT(optrail_message(), StartsWith("unsupported here:"));
}

}  // namespace
}  // namespace optrail::c_program
