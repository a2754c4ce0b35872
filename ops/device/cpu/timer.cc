#include "ops/device/cpu/timer.h"

#include <dirent.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdlib>

#include "base/status_macros.h"

namespace optrail::ops {
namespace {

// Returns the clocks that tell how long this process worked: one for each
// thread if there are several. The clock of the process lags behind by up to a
// tick of the scheduler, some milliseconds, for threads that run on other cores
// at the moment.
std::vector<clockid_t> WorkClocks(int threads) {
  if (threads == 1) return {CLOCK_PROCESS_CPUTIME_ID};
  std::vector<clockid_t> clocks;
  if (DIR* const tasks = opendir("/proc/self/task"); tasks != nullptr) {
    while (const dirent* const task = readdir(tasks)) {
      const int thread = std::atoi(task->d_name);
      // pthread_getcpuclockid computes it so; this works for threads of
      // libraries, too.
      if (thread > 0) clocks.push_back(~thread * 8 | 6);
    }
    closedir(tasks);
  }
  if (clocks.empty()) clocks.push_back(CLOCK_PROCESS_CPUTIME_ID);
  return clocks;
}

// Returns the sum over all of them; a thread that has ended counts as 0.
int64_t WorkedSoFarNs(const std::vector<clockid_t>& clocks) {
  int64_t sum = 0;
  for (const clockid_t clock : clocks) {
    timespec time;
    if (clock_gettime(clock, &time) != 0) continue;
    sum += time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
  }
  return sum;
}

// Threads fall asleep between samples, and to wake one takes as long as a short
// call does. Between two operators of a program they stay awake.
void WakeThreads(CpuDevice& device) {
  using Clock = std::chrono::steady_clock;
  // One that has lost its core is not waited for.
  constexpr auto kPatience = std::chrono::milliseconds(1);
  const int threads = device.threads();
  if (threads == 1) return;
  const Clock::time_point start = Clock::now();
  std::atomic<int> awake{0};
  device.ParallelFor(threads, [&](int64_t) {
    awake.fetch_add(1);
    while (awake.load() < threads && Clock::now() - start < kPatience) {
    }
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Timer>> CpuTimer::Create(
    Runnable& runnable, OperandSets& operands, CpuDevice& device,
    TimingMode mode, const std::function<void(Call&)>& adjust) {
  std::unique_ptr<CpuTimer> timer(
      new CpuTimer(runnable.invocation(), operands, device, mode));
  for (int set = 0; set < operands.sets(); ++set) {
    OPTRAIL_ASSIGN_OR_RETURN(Call call,
                             runnable.Prepare(operands.addresses(set)));
    if (adjust) adjust(call);
    timer->prepared_.push_back(call);
  }
  return timer;
}

absl::Status CpuTimer::Prepare(int64_t calls) {
  next_calls_ = calls;
  const absl::Status restored =
      operands_.has_in_out() ? operands_.Restore() : absl::OkStatus();
  if (cold_) device_.FlushCaches();
  return restored;
}

absl::StatusOr<int64_t> CpuTimer::TimeNs() {
  const std::vector<clockid_t> clocks = WorkClocks(device_.threads());
  WakeThreads(device_);
  const int64_t before_ns = WorkedSoFarNs(clocks);
  const auto start = std::chrono::steady_clock::now();
  const int64_t step = operands_.has_in_out() ? 1 : 0;
  for (int64_t i = 0; i < next_calls_; ++i) {
    OPTRAIL_RETURN_IF_ERROR(invocation_.Run(prepared_[i * step]));
  }
  const auto end = std::chrono::steady_clock::now();
  worked_ns_ = WorkedSoFarNs(clocks) - before_ns;
  cpu_ns_ += worked_ns_;
  calls_ += next_calls_;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(end - start)
      .count();
}

absl::StatusOr<Timer::Ran> CpuTimer::Run(int64_t calls) {
  if (cold_) {
    return absl::UnimplementedError(
        "unsupported here: calls with cold caches are not metered on a CPU, "
        "since flushing takes more energy than they do; expected --cache=hot");
  }
  const auto sets =
      operands_.has_in_out() ? static_cast<int64_t>(prepared_.size()) : 1;
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < calls; ++i) {
    OPTRAIL_RETURN_IF_ERROR(invocation_.Run(prepared_[i % sets]));
  }
  const auto end = std::chrono::steady_clock::now();
  return Ran{calls,
             std::chrono::duration_cast<std::chrono::nanoseconds>(end - start)
                 .count()};
}

int64_t CpuTimer::max_calls() const {
  if (cold_) return 1;
  return operands_.has_in_out() ? operands_.sets() : Timer::max_calls();
}

void CpuTimer::Fill(proto::Measurement* measurement) const {
  if (calls_ == 0) return;
  proto::MetricSamples* cpu_time = measurement->add_metrics();
  cpu_time->set_metric("cpu_time");
  cpu_time->set_unit("ns");
  cpu_time->set_direction(proto::LOWER_IS_BETTER);
  cpu_time->add_values(static_cast<double>(cpu_ns_) /
                       static_cast<double>(calls_));
}

}  // namespace optrail::ops
