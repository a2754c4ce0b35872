#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "ops/device/cpu/operand_memory.h"
#include "ops/device/cpu/page_trace.h"
#include "ops/device/cpu/perturbation.h"

namespace optrail::ops {
namespace {

constexpr int kWarmUpCalls = 2;
constexpr int kMostCalls = 2000;
constexpr int64_t kProfileNs = 120'000'000;

class Metrics {
 public:
  void Add(const std::string& name, double value) {
    proto::MetricSamples& metric = metrics_.emplace_back();
    metric.set_metric(name);
    metric.add_values(value);
  }
  std::vector<proto::MetricSamples> Take() { return std::move(metrics_); }

 private:
  std::vector<proto::MetricSamples> metrics_;
};

// Loops of a device, with a clock around every iteration.
class ObservedLoops : public ParallelLoops {
 public:
  explicit ObservedLoops(CpuDevice& device)
      : device_(device), busy_ns_(device.threads()) {}

  void ParallelFor(int64_t count,
                   absl::FunctionRef<void(int64_t)> body) override {
    const Clock& clock = *Clock::Real();
    for (Busy& busy : busy_ns_) busy.ns = 0;
    next_thread_ = 0;
    ++generation_;
    const int64_t start_ns = clock.NowNs();
    device_.ParallelFor(count, [&](int64_t i) {
      const int64_t begin_ns = clock.NowNs();
      body(i);
      busy_ns_[ThreadNumber()].ns += clock.NowNs() - begin_ns;
    });
    parallel_ns_ += clock.NowNs() - start_ns;
    int64_t most = 0, sum = 0;
    for (const Busy& busy : busy_ns_) {
      most = std::max(most, busy.ns);
      sum += busy.ns;
    }
    slowest_ns_ += most;
    mean_ns_ += sum / static_cast<int64_t>(busy_ns_.size());
    ++loops_;
  }

  void AddTo(Metrics& metrics, double calls) const {
    metrics.Add("parallel_loops", static_cast<double>(loops_) / calls);
    metrics.Add("parallel_ns", static_cast<double>(parallel_ns_) / calls);
    metrics.Add("slowest_thread_ns", static_cast<double>(slowest_ns_) / calls);
    metrics.Add("mean_thread_ns", static_cast<double>(mean_ns_) / calls);
  }

 private:
  struct alignas(64) Busy {
    int64_t ns = 0;
  };

  // In the order in which threads come to this loop.
  int ThreadNumber() {
    static thread_local int64_t generation = -1;
    static thread_local int number = 0;
    if (generation != generation_) {
      generation = generation_;
      number = std::min(next_thread_.fetch_add(1),
                        static_cast<int>(busy_ns_.size()) - 1);
    }
    return number;
  }

  CpuDevice& device_;
  std::vector<Busy> busy_ns_;  // of each thread, in this loop
  std::atomic<int> next_thread_{0};
  int64_t generation_ = 0;
  int64_t loops_ = 0, parallel_ns_ = 0, slowest_ns_ = 0, mean_ns_ = 0;
};

double EmptyLoopNs(CpuDevice& device) {
  constexpr int kTimes = 200;
  std::vector<double> times_ns;
  for (int i = 0; i < kTimes; ++i) {
    const int64_t start_ns = Clock::Real()->NowNs();
    device.ParallelFor(device.threads(), [](int64_t) {});
    times_ns.push_back(static_cast<double>(Clock::Real()->NowNs() - start_ns));
  }
  return Median(times_ns);
}

double MicrosecondsOf(const timeval& time) {
  return 1e6 * static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_usec);
}

// Calls with every in-out operand restored before each, so that none meets what
// another left.
class Caller {
 public:
  static absl::StatusOr<Caller> Make(Runnable& runnable,
                                     OperandSets& operands) {
    Caller caller;
    OPTRAIL_ASSIGN_OR_RETURN(caller.call_,
                             runnable.Prepare(operands.addresses(0)));
    caller.runnable_ = &runnable;
    caller.operands_ = &operands;
    return caller;
  }
  Call& call() { return call_; }
  absl::Status Run(int64_t* elapsed_ns = nullptr) {
    if (operands_->has_in_out()) OPTRAIL_RETURN_IF_ERROR(operands_->Restore());
    const int64_t start_ns = Clock::Real()->NowNs();
    OPTRAIL_RETURN_IF_ERROR(runnable_->invocation().Run(call_));
    if (elapsed_ns != nullptr) {
      *elapsed_ns = Clock::Real()->NowNs() - start_ns;
    }
    return absl::OkStatus();
  }

 private:
  Runnable* runnable_ = nullptr;
  OperandSets* operands_ = nullptr;
  Call call_;
};

absl::Status CountUse(Caller& caller, Metrics& metrics) {
  rusage before, after;
  std::vector<double> calls_ns;
  int64_t sum_ns = 0;
  getrusage(RUSAGE_THREAD, &before);
  while (sum_ns < kProfileNs &&
         calls_ns.size() < static_cast<size_t>(kMostCalls)) {
    int64_t elapsed_ns = 0;
    OPTRAIL_RETURN_IF_ERROR(caller.Run(&elapsed_ns));
    sum_ns += elapsed_ns;
    calls_ns.push_back(static_cast<double>(elapsed_ns));
  }
  getrusage(RUSAGE_THREAD, &after);
  const auto calls = static_cast<double>(calls_ns.size());
  const double system_us =
      MicrosecondsOf(after.ru_stime) - MicrosecondsOf(before.ru_stime);
  const double processor_us = system_us + MicrosecondsOf(after.ru_utime) -
                              MicrosecondsOf(before.ru_utime);
  metrics.Add("call_ns", Median(calls_ns));
  metrics.Add("page_faults",
              static_cast<double>(after.ru_minflt - before.ru_minflt) / calls);
  metrics.Add("switches",
              static_cast<double>(after.ru_nvcsw - before.ru_nvcsw) / calls);
  // Ticks of the scheduler are milliseconds: shorter, the shares say nothing.
  if (sum_ns >= kProfileNs / 2) {
    metrics.Add("system_share",
                processor_us > 0 ? system_us / processor_us : 0);
    metrics.Add("processor_share",
                1e3 * processor_us / static_cast<double>(sum_ns));
  }
  return absl::OkStatus();
}

absl::Status ObserveLoops(Caller& caller, CpuDevice& device, Metrics& metrics) {
  constexpr int64_t kObserveNs = 60'000'000;
  ObservedLoops loops(device);
  ParallelLoops* const original = caller.call().stream.loops;
  caller.call().stream.loops = &loops;
  const int64_t start_ns = Clock::Real()->NowNs();
  int calls = 0;
  while (calls < kMostCalls && Clock::Real()->NowNs() - start_ns < kObserveNs) {
    OPTRAIL_RETURN_IF_ERROR(caller.Run());
    ++calls;
  }
  caller.call().stream.loops = original;
  loops.AddTo(metrics, calls);
  metrics.Add("empty_loop_ns", EmptyLoopNs(device));
  return absl::OkStatus();
}

absl::Status TracePages(Runnable& runnable, OperandSets& operands,
                        Caller& caller, Metrics& metrics) {
  std::vector<OperandMemory> copies;
  std::vector<std::pair<std::string, int>> regions;
  PageTrace trace;
  const auto copy = [&](const std::string& name, void** address,
                        int64_t bytes) -> absl::Status {
    OPTRAIL_ASSIGN_OR_RETURN(
        OperandMemory memory,
        OperandMemory::Copy(*address, bytes, OperandMemory::Pages::kSmall, 0));
    *address = memory.data();
    regions.emplace_back(name,
                         trace.Add(memory.mapping(), memory.mapped_bytes()));
    copies.push_back(std::move(memory));
    return absl::OkStatus();
  };
  const auto addresses = operands.addresses(0);
  std::vector<void*> moved(addresses.begin(), addresses.end());
  for (size_t i = 0; i < moved.size(); ++i) {
    OPTRAIL_RETURN_IF_ERROR(
        copy(absl::StrCat(i), &moved[i], operands.bytes()[i]));
  }
  Call call = caller.call();
  if (call.workspace != nullptr) {
    OPTRAIL_RETURN_IF_ERROR(copy("workspace", &call.workspace,
                                 runnable.invocation().workspace_bytes()));
  }
  call.operands = moved;
  call.stream.loops = nullptr;
  absl::Status status;
  trace.Watch([&] { status = runnable.invocation().Run(call); });
  OPTRAIL_RETURN_IF_ERROR(status);
  for (const auto& [name, region] : regions) {
    if (region < 0 || trace.visits(region) == 0) continue;
    const auto add = [&, &name = name](const char* what, int64_t value) {
      metrics.Add(absl::StrCat(what, ":", name), static_cast<double>(value));
    };
    add("page_visits", trace.visits(region));
    add("pages_visited", trace.distinct(region));
    add("regular_visits", trace.regular(region));
    add("adjacent_visits", trace.adjacent(region));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<proto::MetricSamples>> ProfileCpuCalls(
    Runnable& runnable, OperandSets& operands, CpuDevice& device) {
  OPTRAIL_ASSIGN_OR_RETURN(Caller caller, Caller::Make(runnable, operands));
  for (int i = 0; i < kWarmUpCalls; ++i) OPTRAIL_RETURN_IF_ERROR(caller.Run());
  Metrics metrics;
  OPTRAIL_RETURN_IF_ERROR(CountUse(caller, metrics));
  if (device.threads() > 1) {
    OPTRAIL_RETURN_IF_ERROR(ObserveLoops(caller, device, metrics));
  }
  OPTRAIL_RETURN_IF_ERROR(TracePages(runnable, operands, caller, metrics));
  return metrics.Take();
}

}  // namespace optrail::ops
