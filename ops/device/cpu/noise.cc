#include "ops/device/cpu/noise.h"

#include <dirent.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/check.h"
#include "base/file/file.h"
#include "base/stats/statistics.h"
#include "ops/device/cpu/witnesses.h"

namespace optrail::ops {
namespace {

using Clock = std::chrono::steady_clock;

std::string TextOf(const std::string& path) {
  return ReadFile(path).value_or("");
}

int64_t ElapsedNs(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() -
                                                              start)
      .count();
}

// A chain of dependent integer operations: its time depends on the clock rate
// and on who else has the core, on nothing else.
uint64_t Spin(int64_t turns, uint64_t x) {
  for (int64_t i = 0; i < turns; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  return x;
}

// Nearest rank: a ratio of two samples that were taken.
double NearestRank(const std::vector<double>& sorted, double q) {
  const auto rank = static_cast<size_t>(q * static_cast<double>(sorted.size()));
  return sorted[std::min(rank, sorted.size() - 1)];
}

}  // namespace

absl::optional<int64_t> RunDelayNs() {
  DIR* const tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return absl::nullopt;
  absl::optional<int64_t> total;
  while (const dirent* const task = readdir(tasks)) {
    if (task->d_name[0] == '.') continue;
    const absl::optional<int64_t> delay = ParseRunDelayNs(
        TextOf(std::string("/proc/self/task/") + task->d_name + "/schedstat"));
    // A thread may have ended since it was listed.
    if (delay.has_value()) total = total.value_or(0) + *delay;
  }
  closedir(tasks);
  return total;
}

absl::optional<int64_t> StealNs() {
  const std::map<int, int64_t> ticks = ParseStealTicks(TextOf("/proc/stat"));
  if (ticks.empty()) return absl::nullopt;
  int64_t total = 0;
  for (const auto& [cpu, stolen] : ticks) total += stolen;
  return static_cast<int64_t>(static_cast<double>(total) * TickNs());
}

NoiseReport SummarizeNoise(const std::vector<double>& sample_ns) {
  OPTRAIL_CHECK(sample_ns.size() >= 2) << sample_ns.size() << " samples";
  std::vector<double> sorted = sample_ns;
  std::sort(sorted.begin(), sorted.end());
  NoiseReport report;
  report.samples = static_cast<int>(sorted.size());
  report.median_ns = NearestRank(sorted, 0.5);
  report.p95_over_median = NearestRank(sorted, 0.95) / report.median_ns;
  report.max_over_median = sorted.back() / report.median_ns;
  const auto middle =
      sample_ns.begin() + static_cast<int64_t>(sample_ns.size() / 2);
  report.drift = Median(std::vector<double>(middle, sample_ns.end())) /
                 Median(std::vector<double>(sample_ns.begin(), middle));
  return report;
}

NoiseReport ProbeNoise(absl::Duration duration) {
  [[maybe_unused]] static volatile uint64_t sink;
  uint64_t x = 88172645463325252;
  // Turns for about 0.1 ms, from the fastest of a few tries.
  constexpr int64_t kTrialTurns = 10000;
  int64_t trial_ns = int64_t{1} << 62;
  for (int i = 0; i < 20; ++i) {
    const Clock::time_point start = Clock::now();
    sink = x = Spin(kTrialTurns, x);
    trial_ns = std::min(trial_ns, ElapsedNs(start));
  }
  const int64_t turns = kTrialTurns * 100000 / std::max<int64_t>(trial_ns, 1);

  const absl::optional<int64_t> delay_before = RunDelayNs();
  const absl::optional<int64_t> steal_before = StealNs();
  const Clock::time_point begin = Clock::now();
  std::vector<double> samples;
  while (samples.size() < 10 ||
         ElapsedNs(begin) < absl::ToInt64Nanoseconds(duration)) {
    const Clock::time_point start = Clock::now();
    sink = x = Spin(turns, x);
    samples.push_back(static_cast<double>(ElapsedNs(start)));
  }
  const auto wall_ns = static_cast<double>(ElapsedNs(begin));

  NoiseReport report = SummarizeNoise(samples);
  if (const auto delay = RunDelayNs();
      delay.has_value() && delay_before.has_value()) {
    report.run_delay_fraction =
        static_cast<double>(*delay - *delay_before) / wall_ns;
  }
  if (const auto steal = StealNs();
      steal.has_value() && steal_before.has_value()) {
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    report.steal_fraction =
        static_cast<double>(*steal - *steal_before) / wall_ns / cores;
  }
  double load = 0;
  if (getloadavg(&load, 1) == 1) report.load_average = load;
  return report;
}

}  // namespace optrail::ops
