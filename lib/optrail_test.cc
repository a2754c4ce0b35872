// The functions of optrail.h as a C program calls them, linked directly so that
// sanitizers see all of it.

#include "lib/optrail.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/store.pb.h"
#include "tuning/store/store_files.h"

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

optrail_problem ProblemOf(const char* op, const char* shape, int threads = 1) {
  optrail_problem problem = OPTRAIL_PROBLEM_INIT;
  problem.op = op;
  problem.shape = shape;
  problem.threads = threads;
  return problem;
}

std::string HardwareId() {
  const char* id = nullptr;
  EXPECT_EQ(optrail_hardware_id(nullptr, &id), OPTRAIL_OK) << optrail_message();
  return id;
}

// An open store, or null.
class Store {
 public:
  explicit Store(const char* path = nullptr) {
    EXPECT_EQ(optrail_store_open(path, &store_), OPTRAIL_OK)
        << optrail_message();
  }
  ~Store() { optrail_store_close(store_); }
  operator const optrail_store*() const { return store_; }

 private:
  optrail_store* store_ = nullptr;
};

class Plan {
 public:
  Plan(const optrail_store* store, const optrail_problem& problem,
       const optrail_plan_options* options = nullptr) {
    EXPECT_EQ(optrail_plan_create(store, &problem, options, &plan_), OPTRAIL_OK)
        << optrail_message();
  }
  ~Plan() { optrail_plan_destroy(plan_); }
  operator const optrail_plan*() const { return plan_; }

 private:
  optrail_plan* plan_ = nullptr;
};

class Threads {
 public:
  explicit Threads(int count) {
    EXPECT_EQ(optrail_threads_create(count, &threads_), OPTRAIL_OK);
  }
  Threads(optrail_parallel_for parallel_for, int count,
          void* context = nullptr) {
    EXPECT_EQ(optrail_threads_adopt(parallel_for, context, count, &threads_),
              OPTRAIL_OK);
  }
  ~Threads() { optrail_threads_destroy(threads_); }
  operator const optrail_threads*() const { return threads_; }

 private:
  optrail_threads* threads_ = nullptr;
};

std::vector<float> Values(size_t count, int seed) {
  std::vector<float> values(count);
  uint32_t state = 2463534242u + static_cast<uint32_t>(seed);
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / (1 << 23) - 1;
  }
  return values;
}

std::vector<float> Product(const std::vector<float>& a,
                           const std::vector<float>& b, int m, int n, int k) {
  std::vector<float> c(m * n);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l) sum += double{a[i * k + l]} * b[l * n + j];
      c[i * n + j] = static_cast<float>(sum);
    }
  }
  return c;
}

void ExpectNear(const std::vector<float>& values,
                const std::vector<float>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], expected[i], 1e-4) << i;
  }
}

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

// A folder with one tuned config of softmax for `hardware`.
std::string StoreFolder(const std::string& name, const std::string& hardware,
                        const std::string& config) {
  const std::string folder = testing::TempDir() + "/" + name;
  optrail::proto::TunedConfig tuned;
  tuned.set_shape("rows=6,cols=40/f32");
  tuned.set_config(config);
  tuned.set_threads(1);
  tuned.set_cache_mode(optrail::proto::HOT);
  tuned.set_kernel_id("0123456789abcdef");
  const absl::Status status = optrail::tuning::WriteOverlay(
      folder, "softmax", hardware, optrail::proto::CPU, tuned);
  EXPECT_TRUE(status.ok()) << status;
  return folder;
}

// A config of softmax that is valid here and not the default.
std::string OtherConfig() {
  optrail_plan_options options = OPTRAIL_PLAN_OPTIONS_INIT;
  for (const char* rows : {"1", "2", "4", "8"}) {
    Plan plan(nullptr, ProblemOf("softmax", "rows=6,cols=40/f32"));
    optrail_choice choice = OPTRAIL_CHOICE_INIT;
    EXPECT_EQ(optrail_plan_choice(plan, &choice), OPTRAIL_OK);
    const std::string text = choice.config;
    const size_t at = text.find("rows_per_task=") + strlen("rows_per_task=");
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string other = text.substr(0, at) + rows + text.substr(end);
    optrail_plan* made = nullptr;
    options.config = other.c_str();
    const optrail_problem problem = ProblemOf("softmax", "rows=6,cols=40/f32");
    const bool valid =
        other != text &&
        optrail_plan_create(nullptr, &problem, &options, &made) == OPTRAIL_OK;
    optrail_plan_destroy(made);
    if (valid) return other;
  }
  ADD_FAILURE() << "no other config";
  return "";
}

TEST(Lookup, TellsWhereAConfigIsFrom) {
  const std::string config = OtherConfig();
  const Store store(StoreFolder("exact", HardwareId(), config).c_str());
  optrail_problem problem = ProblemOf("softmax", "rows=6,cols=40/f32");
  optrail_choice choice = OPTRAIL_CHOICE_INIT;
  ASSERT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_OK)
      << optrail_message();
  EXPECT_EQ(choice.source, OPTRAIL_TUNED_EXACTLY);
  EXPECT_EQ(choice.config, config);
  EXPECT_EQ(choice.hardware_id, HardwareId());
  EXPECT_STREQ(choice.warning, "");
  EXPECT_NE(choice.unverified, 0);  // of no kernel that there is

  problem.shape = "rows=6,cols=48/f32";
  ASSERT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_OK);
  EXPECT_EQ(choice.source, OPTRAIL_DEFAULT_CONFIG);
  EXPECT_THAT(choice.warning, HasSubstr("the default is used"));
  EXPECT_STRNE(choice.config, "");

  problem.flags = OPTRAIL_NEAREST_SHAPE;
  ASSERT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_OK);
  EXPECT_EQ(choice.source, OPTRAIL_TUNED_FOR_OTHER_SHAPE);
  EXPECT_NEAR(choice.shape_distance, std::log2(48. / 40), 1e-9);

  problem.flags = OPTRAIL_EXACT_ONLY;
  EXPECT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_NOT_FOUND);
}

TEST(Lookup, AStoreOfAnotherMachineIsNotThisOnes) {
  const Store store(
      StoreFolder("other", "acme-abacus-1c", OtherConfig()).c_str());
  optrail_problem problem = ProblemOf("softmax", "rows=6,cols=40/f32");
  optrail_choice choice = OPTRAIL_CHOICE_INIT;
  ASSERT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_OK);
  EXPECT_EQ(choice.source, OPTRAIL_DEFAULT_CONFIG);
  EXPECT_THAT(choice.warning, HasSubstr("another maker's hardware"));
  problem.flags = OPTRAIL_EXACT_ONLY;
  EXPECT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_NOT_FOUND);
  EXPECT_THAT(optrail_message(), HasSubstr("another maker's hardware"));
  optrail_plan* plan = nullptr;
  EXPECT_EQ(optrail_plan_create(store, &problem, nullptr, &plan),
            OPTRAIL_NOT_FOUND);
}

TEST(Lookup, OfSimilarHardwareIsSaid) {
  const std::string similar = HardwareId() + "-similar";
  const Store store(StoreFolder("similar", similar, OtherConfig()).c_str());
  optrail_problem problem = ProblemOf("softmax", "rows=6,cols=40/f32");
  optrail_choice choice = OPTRAIL_CHOICE_INIT;
  ASSERT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_OK);
  EXPECT_EQ(choice.source, OPTRAIL_TUNED_ON_OTHER_HARDWARE);
  EXPECT_EQ(choice.hardware_id, similar);
  problem.flags = OPTRAIL_EXACT_ONLY;
  EXPECT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_NOT_FOUND);
  optrail_plan* plan = nullptr;
  EXPECT_EQ(optrail_plan_create(store, &problem, nullptr, &plan),
            OPTRAIL_NOT_FOUND);
  EXPECT_THAT(optrail_message(), HasSubstr(similar));
  EXPECT_EQ(optrail_plan_create(nullptr, &problem, nullptr, &plan),
            OPTRAIL_NOT_FOUND);
}

TEST(Lookup, OperatorsOfOthersMayBeAskedFor) {
  const std::string folder = testing::TempDir() + "/own";
  optrail::proto::TunedConfig tuned;
  tuned.set_shape("n=4/f32");
  tuned.set_config("tile=8");
  tuned.set_threads(1);
  tuned.set_cache_mode(optrail::proto::HOT);
  ASSERT_TRUE(optrail::tuning::WriteOverlay(folder, "our_own", HardwareId(),
                                            optrail::proto::CPU, tuned)
                  .ok());
  const Store store(folder.c_str());
  optrail_problem problem = ProblemOf("our_own", "n=4/f32");
  optrail_choice choice = OPTRAIL_CHOICE_INIT;
  ASSERT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_OK)
      << optrail_message();
  EXPECT_STREQ(choice.config, "tile=8");
  problem.shape = "n=5/f32";
  ASSERT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_OK);
  EXPECT_STREQ(choice.config, "");
  problem.op = "nobodys";
  EXPECT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_NOT_FOUND);
  EXPECT_THAT(optrail_message(),
              AllOf(HasSubstr("nobodys"), HasSubstr("matmul")));
}

TEST(Lookup, ManyThreadsGetOneAnswer) {
  const Store store;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const std::string shape =
            "rows=" + std::to_string(1 + (i + t) % 7) + ",cols=40/f32";
        const optrail_problem problem = ProblemOf("softmax", shape.c_str());
        optrail_choice choice = OPTRAIL_CHOICE_INIT;
        if (optrail_lookup(store, &problem, &choice) != OPTRAIL_OK ||
            std::strlen(choice.config) == 0) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Digest, IsOfWhatTheStoreHolds) {
  const std::string config = OtherConfig();
  const Store plain, one(StoreFolder("one", HardwareId(), config).c_str()),
      again(StoreFolder("again", HardwareId(), config).c_str());
  EXPECT_EQ(std::strlen(optrail_store_digest(one)), 16u);
  EXPECT_STREQ(optrail_store_digest(one), optrail_store_digest(again));
  EXPECT_STRNE(optrail_store_digest(one), optrail_store_digest(plain));
  EXPECT_STREQ(optrail_store_digest(nullptr), "");
}

TEST(Open, SaysWhatIsWrongWithAStore) {
  optrail_store* store = nullptr;
  EXPECT_EQ(optrail_store_open("/nowhere/at/all", &store), OPTRAIL_NOT_FOUND);
  EXPECT_THAT(optrail_message(), HasSubstr("/nowhere/at/all"));
  const std::string file = testing::TempDir() + "/broken.textproto";
  ASSERT_TRUE(optrail::WriteFileAtomically(file, "operator_name: 7\n").ok());
  EXPECT_EQ(optrail_store_open(file.c_str(), &store), OPTRAIL_INVALID_ARGUMENT);
  EXPECT_THAT(optrail_message(), HasSubstr("broken.textproto:1:"));
  EXPECT_EQ(store, nullptr);
  EXPECT_EQ(optrail_store_open(nullptr, nullptr), OPTRAIL_INVALID_ARGUMENT);
}

TEST(ShapeText, IsMadeOfDimensions) {
  char text[64];
  const int64_t dims[] = {1, 8, 8, 4, 6, 3, 3};
  ASSERT_EQ(optrail_shape_text("conv2d", dims, 7, "stride=2,padding=1", "f32",
                               text, sizeof(text)),
            OPTRAIL_OK)
      << optrail_message();
  EXPECT_STREQ(text, "n=1,h=8,w=8,c=4,k=6,r=3,s=3/padding=1,stride=2/f32");
  EXPECT_EQ(optrail_shape_text("conv2d", dims, 6, nullptr, "f32", text, 64),
            OPTRAIL_INVALID_ARGUMENT);
  EXPECT_EQ(optrail_shape_text("conv2d", dims, 7, nullptr, "f32", text, 8),
            OPTRAIL_INVALID_ARGUMENT);
  EXPECT_EQ(optrail_shape_text("conv2d", dims, 7, "pading=1", "f32", text, 64),
            OPTRAIL_INVALID_ARGUMENT);
  EXPECT_THAT(optrail_message(), HasSubstr("pading"));
}

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

TEST(Structs, OfOtherHeadersAreUnderstood) {
  // An older header, that ended before the flags.
  struct {
    size_t struct_size;
    const char *op, *shape, *device, *backend, *cache_mode;
    int32_t threads;
  } older = {offsetof(optrail_problem, flags),
             "softmax",
             "rows=6,cols=40/f32",
             nullptr,
             nullptr,
             nullptr,
             0};
  const Store store;
  optrail_choice choice = OPTRAIL_CHOICE_INIT;
  EXPECT_EQ(optrail_lookup(store, reinterpret_cast<optrail_problem*>(&older),
                           &choice),
            OPTRAIL_OK)
      << optrail_message();
  // A newer one, with a field that this library does not know.
  struct {
    optrail_problem known;
    int64_t wish;
  } newer = {ProblemOf("softmax", "rows=6,cols=40/f32"), 0};
  newer.known.struct_size = sizeof(newer);
  EXPECT_EQ(optrail_lookup(store, &newer.known, &choice), OPTRAIL_OK);
  newer.wish = 1;
  EXPECT_EQ(optrail_lookup(store, &newer.known, &choice),
            OPTRAIL_INVALID_ARGUMENT);
  EXPECT_THAT(optrail_message(), HasSubstr("newer"));
}

TEST(Problems, ThatCannotBePosedAreStatuses) {
  const struct {
    const char *op, *shape;
    optrail_status status;
    const char* message;
  } kCases[] = {
      {nullptr, "n=1/f32", OPTRAIL_INVALID_ARGUMENT, "op is empty"},
      {"nosuch", "n=1/f32", OPTRAIL_NOT_FOUND, "nosuch"},
      {"matmul", nullptr, OPTRAIL_INVALID_ARGUMENT, "shape is empty"},
      {"matmul", "m=1", OPTRAIL_INVALID_ARGUMENT, "m=1"},
      {"matmul", "m=1,n=1/f32", OPTRAIL_INVALID_ARGUMENT, ""},
      {"matmul", "m=0,n=1,k=1/f32", OPTRAIL_INVALID_ARGUMENT, "\"m\""},
      {"matmul", "m=-4,n=1,k=1/f32", OPTRAIL_INVALID_ARGUMENT, ""},
      {"matmul", "m=1,n=1,k=1/f33", OPTRAIL_INVALID_ARGUMENT, "f33"},
      {"matmul", "m=1,n=1,k=1/padding=1/f32", OPTRAIL_INVALID_ARGUMENT,
       "padding"},
      {"matmul", "m=9223372036854775807,n=9223372036854775807,k=2/f32",
       OPTRAIL_INVALID_ARGUMENT, ""},
      {"matmul", "m=99999999999999999999,n=1,k=1/f32", OPTRAIL_INVALID_ARGUMENT,
       ""},
      {"softmax", "rows=4611686018427387904,cols=2/f32",
       OPTRAIL_INVALID_ARGUMENT, ""},
      {"conv2d", "n=1,h=2,w=2,c=1,k=1,r=3,s=3/f32", OPTRAIL_INVALID_ARGUMENT,
       ""},
  };
  for (const auto& c : kCases) {
    const optrail_problem problem = ProblemOf(c.op, c.shape);
    optrail_plan* plan = nullptr;
    EXPECT_EQ(optrail_plan_create(nullptr, &problem, nullptr, &plan), c.status)
        << (c.shape == nullptr ? "" : c.shape) << ": " << optrail_message();
    EXPECT_THAT(optrail_message(), HasSubstr(c.message));
    EXPECT_EQ(plan, nullptr);
    optrail_plan_destroy(plan);
  }
  optrail_problem problem = ProblemOf("matmul", "m=1,n=1,k=1/f32", -1);
  optrail_plan* plan = nullptr;
  EXPECT_EQ(optrail_plan_create(nullptr, &problem, nullptr, &plan),
            OPTRAIL_INVALID_ARGUMENT);
  problem.threads = 1;
  problem.flags = 128;
  EXPECT_EQ(optrail_plan_create(nullptr, &problem, nullptr, &plan),
            OPTRAIL_INVALID_ARGUMENT);
  problem.flags = 0;
  problem.backend = "nosuch";
  EXPECT_EQ(optrail_plan_create(nullptr, &problem, nullptr, &plan),
            OPTRAIL_UNSUPPORTED);
  problem.backend = "Not A Name";
  EXPECT_EQ(optrail_plan_create(nullptr, &problem, nullptr, &plan),
            OPTRAIL_INVALID_ARGUMENT);
  problem.backend = nullptr;
  problem.device = "tpu";
  EXPECT_EQ(optrail_plan_create(nullptr, &problem, nullptr, &plan),
            OPTRAIL_INVALID_ARGUMENT);
}

TEST(Problems, OfMutatedTextsAreAnsweredOrRefused) {
  const std::string texts[] = {"matmul",
                               "softmax",
                               "conv2d",
                               "m=33,n=47,k=29/f32",
                               "rows=6,cols=40/f32",
                               "n=1,h=7,w=6,c=5,k=4,r=3,s=3/padding=1/f32"};
  const std::string letters = "=,/0192mnk\x80 -";
  std::mt19937 random(7);
  int made = 0;
  for (int i = 0; i < 400; ++i) {
    std::string op = texts[random() % 3], shape = texts[3 + random() % 3];
    for (unsigned n = random() % 3; n > 0; --n) {
      std::string& text = random() % 8 == 0 ? op : shape;
      text[random() % text.size()] = letters[random() % letters.size()];
    }
    const optrail_problem problem = ProblemOf(op.c_str(), shape.c_str());
    optrail_plan* plan = nullptr;
    const optrail_status status =
        optrail_plan_create(nullptr, &problem, nullptr, &plan);
    EXPECT_EQ(status == OPTRAIL_OK, plan != nullptr);
    EXPECT_NE(status, OPTRAIL_INTERNAL) << op << " " << shape;
    EXPECT_STRNE(optrail_message(), "");
    made += status == OPTRAIL_OK;
    optrail_plan_destroy(plan);
  }
  EXPECT_GT(made, 20);
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

TEST(Statuses, HaveNames) {
  EXPECT_STREQ(optrail_status_name(OPTRAIL_OUT_OF_MEMORY), "OUT_OF_MEMORY");
  EXPECT_STREQ(optrail_status_name(static_cast<optrail_status>(99)), "UNKNOWN");
  EXPECT_EQ(optrail_version(), OPTRAIL_VERSION);
  EXPECT_THAT(optrail_operators(), HasSubstr("softmax"));
}

}  // namespace
