// A C++ program that gives liboptrail its own threads.

#include <optrail.h>

#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

constexpr int kThreads = 2;

// Any pool will do: this one starts threads for every loop.
void ParallelFor(void*, int64_t count, void (*body)(void*, int64_t),
                 void* argument) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([=] {
      for (int64_t i = t; i < count; i += kThreads) body(argument, i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

int Fail(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, optrail_message());
  return 2;
}

}  // namespace

int main() {
  optrail_problem problem = OPTRAIL_PROBLEM_INIT;
  problem.op = "softmax";
  problem.shape = "rows=512,cols=256/f32";
  problem.threads = kThreads;
  optrail_plan* plan = nullptr;
  if (optrail_plan_create(nullptr, &problem, nullptr, &plan) != OPTRAIL_OK) {
    return Fail("plan");
  }
  optrail_threads* threads = nullptr;
  if (optrail_threads_adopt(ParallelFor, nullptr, kThreads, &threads) !=
      OPTRAIL_OK) {
    return Fail("threads");
  }
  std::vector<float> x(512 * 256, 1), y(x.size());
  void* operands[] = {x.data(), y.data()};
  optrail_call call = OPTRAIL_CALL_INIT;
  call.operands = operands;
  call.operand_count = 2;
  call.threads = threads;
  if (optrail_run(plan, &call) != OPTRAIL_OK) return Fail("run");
  optrail_threads_destroy(threads);
  optrail_plan_destroy(plan);
  for (const float value : y) {
    if (std::fabs(value - 1.f / 256) > 1e-6f) return 1;
  }
  std::printf("right on %d threads of the program's own\n", kThreads);
  return 0;
}
