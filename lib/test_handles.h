#ifndef OPTRAIL_LIB_TEST_HANDLES_H_
#define OPTRAIL_LIB_TEST_HANDLES_H_

// Helpers that tests of optrail.h share: handles that close themselves, values
// and a config.
//
//   const Store store;
//   const Plan plan(store, ProblemOf("matmul", "m=3,n=4,k=5/f32"));
//   const optrail_status status = optrail_run(plan, &call);

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/optrail.h"

namespace optrail::c_program {

inline optrail_problem ProblemOf(const char* op, const char* shape,
                                 int threads = 1) {
  optrail_problem problem = OPTRAIL_PROBLEM_INIT;
  problem.op = op;
  problem.shape = shape;
  problem.threads = threads;
  return problem;
}

inline std::string HardwareId() {
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

inline std::vector<float> Values(size_t count, int seed) {
  std::vector<float> values(count);
  uint32_t state = 2463534242u + static_cast<uint32_t>(seed);
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / (1 << 23) - 1;
  }
  return values;
}

inline std::vector<float> Product(const std::vector<float>& a,
                                  const std::vector<float>& b, int m, int n,
                                  int k) {
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

inline void ExpectNear(const std::vector<float>& values,
                       const std::vector<float>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], expected[i], 1e-4) << i;
  }
}

// A config of softmax that is valid here and not the default.
inline std::string OtherConfig() {
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

}  // namespace optrail::c_program

#endif  // OPTRAIL_LIB_TEST_HANDLES_H_
