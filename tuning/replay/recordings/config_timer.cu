#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "tuning/replay/recordings/config_timer.h"
#include "tuning/replay/recordings/recording_log.h"

namespace optrail::tuning::recordings {
namespace {

constexpr double kSampleMs = 0.1;
constexpr double kSlow = 10;

LogEntry Entry(const Space& space, const Config& config, const Size& size,
               double compile_ms) {
  LogEntry entry;
  entry.space = space.name;
  entry.config = ConfigKey(config);
  entry.size = size.name;
  entry.compile_ms = compile_ms;
  return entry;
}

void ExitIfBroken(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "timer: %s\n", cudaGetErrorString(error));
  std::_Exit(3);
}

// All passes.
bool LaunchOnce(CUfunction kernel, const Launch& launch, const Size& size,
                const Problem& problem) {
  const void* from = problem.in0;
  const void* in1 = problem.in1;
  int n[3] = {size.n[0], size.n[1], size.n[2]};
  for (int pass = 0; pass < launch.passes; ++pass) {
    void* to = (launch.passes - pass) % 2 == 1 ? problem.out : problem.scratch;
    void* arguments[] = {&from, &in1, &to, &n[0], &n[1], &n[2]};
    if (cuLaunchKernel(kernel, launch.grid[0], launch.grid[1], launch.grid[2],
                       launch.threads, 1, 1, launch.dynamic_shared_bytes,
                       nullptr, arguments, nullptr) != CUDA_SUCCESS) {
      return false;
    }
    from = to;
  }
  return true;
}

}  // namespace

std::string FailureLines(const Space& space, const Config& config,
                         const char* outcome, double compile_ms) {
  std::string lines;
  for (const Size& size : space.sizes) {
    LogEntry entry = Entry(space, config, size, compile_ms);
    entry.outcome = outcome;
    lines += ToLine(entry);
  }
  return lines;
}

ConfigTimer::ConfigTimer() {
  ExitIfBroken(cudaFree(nullptr));
  ExitIfBroken(cudaEventCreate(&start_));
  for (cudaEvent_t& event : events_) ExitIfBroken(cudaEventCreate(&event));
}

std::string ConfigTimer::Time(const Space& space, const Config& config,
                              double compile_ms, const std::string& cubin) {
  if (&space != space_) SetSpace(space);
  if (cubin.empty()) {
    return FailureLines(space, config, kCompilationFailed, compile_ms);
  }
  CUmodule module;
  if (cuModuleLoadData(&module, cubin.data()) != CUDA_SUCCESS) {
    return FailureLines(space, config, kRuntimeFailed, compile_ms);
  }
  CUfunction kernel;
  std::string lines;
  if (cuModuleGetFunction(&kernel, module, "kernel") != CUDA_SUCCESS) {
    lines = FailureLines(space, config, kRuntimeFailed, compile_ms);
  } else {
    for (size_t i = 0; i < space.sizes.size(); ++i) {
      LogEntry entry = Entry(space, config, space.sizes[i], compile_ms);
      entry.times_ms = TimeSize(config, kernel, i);
      if (entry.times_ms.empty()) entry.outcome = kRuntimeFailed;
      lines += ToLine(entry);
    }
  }
  cuModuleUnload(module);
  return lines;
}

void ConfigTimer::SetSpace(const Space& space) {
  for (Problem& problem : problems_) FreeProblem(problem);
  problems_.clear();
  for (const Size& size : space.sizes) {
    problems_.push_back(MakeProblem(space.name, size));
  }
  best_ms_.assign(space.sizes.size(), INFINITY);
  space_ = &space;
}

// Milliseconds a run, each over `runs` runs.
std::vector<double> ConfigTimer::Samples(CUfunction kernel,
                                         const Launch& launch, const Size& size,
                                         const Problem& problem, int samples,
                                         int runs) {
  LaunchSpin(60000 + 2000 * std::min(runs * launch.passes, 50));
  cudaEventRecord(start_);
  for (int s = 0; s < samples; ++s) {
    for (int i = 0; i < runs; ++i) LaunchOnce(kernel, launch, size, problem);
    cudaEventRecord(events_[s]);
  }
  ExitIfBroken(cudaDeviceSynchronize());
  std::vector<double> times_ms;
  for (int s = 0; s < samples; ++s) {
    float ms = 0;
    ExitIfBroken(cudaEventElapsedTime(&ms, s == 0 ? start_ : events_[s - 1],
                                      events_[s]));
    times_ms.push_back(ms / runs);
  }
  return times_ms;
}

std::vector<double> ConfigTimer::TimeSize(const Config& config,
                                          CUfunction kernel,
                                          size_t size_index) {
  const Size& size = space_->sizes[size_index];
  const Problem& problem = problems_[size_index];
  double& best_ms = best_ms_[size_index];
  const Launch launch =
      space_->launch(NamedConfig(space_->knobs, config), size);
  if (launch.dynamic_shared_bytes > 48 * 1024 &&
      cuFuncSetAttribute(kernel,
                         CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                         launch.dynamic_shared_bytes) != CUDA_SUCCESS) {
    return {};
  }
  ResetOutput(problem);
  if (!LaunchOnce(kernel, launch, size, problem)) {
    ExitIfBroken(cudaDeviceSynchronize());
    return {};
  }
  const int64_t wrong = WrongWords(problem);
  ExitIfBroken(cudaGetLastError());
  if (wrong != 0) {
    std::fprintf(stderr, "%s %s %s: %lld wrong words\n", space_->name.c_str(),
                 ConfigKey(config).c_str(), size.name.c_str(),
                 static_cast<long long>(wrong));
    return {};
  }
  std::vector<double> times_ms = Samples(kernel, launch, size, problem, 1, 1);
  if (times_ms[0] <= kSlow * best_ms) {
    const int runs =
        std::max(1, static_cast<int>(std::ceil(kSampleMs / times_ms[0])));
    times_ms = Samples(kernel, launch, size, problem, kRepeats, runs);
  }
  for (const double ms : times_ms) best_ms = std::min(best_ms, ms);
  return times_ms;
}

}  // namespace optrail::tuning::recordings
