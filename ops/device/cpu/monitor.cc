#include "ops/device/cpu/monitor.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "base/process/cpus.h"
#include "base/stats/statistics.h"
#include "ops/device/cpu/witnesses.h"

namespace optrail::ops {
namespace {

constexpr size_t kLatestLoops = 9;
// Before so many, a reading of the loop is compared with what there is.
constexpr size_t kMinLoops = 3;

int Open(const std::string& path) {
  return open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

// Files of /proc are made anew for each reading from the start.
std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  ssize_t n;
  while (fd >= 0 && (n = pread(fd, buffer, sizeof(buffer),
                               static_cast<off_t>(text.size()))) > 0) {
    text.append(buffer, static_cast<size_t>(n));
  }
  return text;
}

std::string ReadFirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

CpuMonitor::CpuMonitor(Options options) : options_(std::move(options)) {
  const std::vector<int> cpus = UsableCpus();
  cpus_.insert(cpus.begin(), cpus.end());
  const std::string tasks = absl::StrCat(options_.proc, "/self/task");
  if (DIR* dir = opendir(tasks.c_str()); dir != nullptr) {
    while (const dirent* entry = readdir(dir)) {
      if (entry->d_name[0] == '.') continue;
      const std::string task = absl::StrCat(tasks, "/", entry->d_name);
      Thread thread;
      thread.schedstat_fd = Open(task + "/schedstat");
      thread.stat_fd = Open(task + "/stat");
      threads_.push_back(thread);
    }
    closedir(dir);
  }
  stat_fd_ = Open(absl::StrCat(options_.proc, "/stat"));
  if (options_.calibration != nullptr) {
    options_.calibration->Run(options_.calibration_turns);
  }
}

CpuMonitor::~CpuMonitor() {
  for (const Thread& thread : threads_) {
    if (thread.schedstat_fd >= 0) close(thread.schedstat_fd);
    if (thread.stat_fd >= 0) close(thread.stat_fd);
  }
  if (stat_fd_ >= 0) close(stat_fd_);
}

int64_t CpuMonitor::ReadRunDelayNs(bool remember) {
  int64_t total = 0;
  for (Thread& thread : threads_) {
    const std::string schedstat = ReadAll(thread.schedstat_fd);
    total += ParseRunDelayNs(schedstat).value_or(0);
    if (!remember) continue;
    thread.run_time_before_ns = ParseRunTimeNs(schedstat).value_or(0);
    thread.processor_before =
        ParseProcessor(ReadAll(thread.stat_fd)).value_or(-1);
  }
  return total;
}

std::string CpuMonitor::ReadStat() const { return ReadAll(stat_fd_); }

int64_t CpuMonitor::StealTicksSinceBegin() {
  const std::string stat = ReadStat();
  const std::map<int, int64_t> before = ParseStealTicks(stat_before_);
  std::map<int, int64_t> stolen;
  for (const auto& [cpu, ticks] : ParseStealTicks(stat)) {
    const auto was = before.find(cpu);
    if (was != before.end() && ticks > was->second && cpus_.count(cpu) > 0) {
      stolen[cpu] = ticks - was->second;
    }
  }
  if (stolen.empty()) return 0;
  // Only now it matters on which cores threads ran. A thread that cannot be
  // read may have run anywhere.
  std::set<int> used;
  for (const Thread& thread : threads_) {
    const auto run_time_ns = ParseRunTimeNs(ReadAll(thread.schedstat_fd));
    if (run_time_ns == thread.run_time_before_ns) continue;
    const auto processor = ParseProcessor(ReadAll(thread.stat_fd));
    if (!processor.has_value() || thread.processor_before < 0) {
      used = cpus_;
      break;
    }
    used.insert(*processor);
    used.insert(thread.processor_before);
  }
  if (threads_.empty()) used = cpus_;
  int64_t total = 0;
  for (const auto& [cpu, ticks] : stolen) total += used.count(cpu) * ticks;
  return total;
}

void CpuMonitor::Learn(int64_t loop_ns) {
  loops_ns_.push_back(static_cast<double>(loop_ns));
  const size_t latest = std::min(kLatestLoops, loops_ns_.size());
  const double median_ns = Median(absl::MakeConstSpan(loops_ns_).last(latest));
  usual_loop_ns_ = loops_ns_.size() <= kMinLoops
                       ? median_ns
                       : std::min(usual_loop_ns_, median_ns);
}

void CpuMonitor::Begin() {
  stat_before_ = ReadStat();
  // Last, and first in End(): what is waited outside of the sample is no
  // matter.
  run_delay_before_ns_ = ReadRunDelayNs(/*remember=*/true);
}

bool CpuMonitor::End(int64_t elapsed_ns) {
  const int64_t run_delay_ns =
      ReadRunDelayNs(/*remember=*/false) - run_delay_before_ns_;
  const int64_t loop_ns = options_.time_loop_ns();
  const int64_t steal_ticks = StealTicksSinceBegin();
  total_elapsed_ns_ += elapsed_ns;
  uncalibrated_ns_ += elapsed_ns;
  ++uncalibrated_samples_;
  total_run_delay_ns_ += run_delay_ns;
  total_steal_ticks_ += steal_ticks;

  const auto elapsed = static_cast<double>(elapsed_ns);
  const bool waited =
      run_delay_ns > kMaxRunDelayNs &&
      static_cast<double>(run_delay_ns) > kMaxRunDelayFraction * elapsed;
  const bool slow_core =
      usual_loop_ns_ > 0 &&
      static_cast<double>(loop_ns) > kMaxCalibrationRatio * usual_loop_ns_;
  // One tick is longer than most samples: then any steal disturbs.
  const bool stolen = static_cast<double>(steal_ticks) * TickNs() >
                      kMaxRunDelayFraction * elapsed;
  Learn(loop_ns);
  waited_ns_ = waited && !stolen && !slow_core ? run_delay_ns : 0;
  return waited || stolen || slow_core;
}

bool CpuMonitor::Calibrate() {
  if (options_.calibration == nullptr || uncalibrated_ns_ < kCalibrationGapNs ||
      uncalibrated_samples_ < kCalibrationGapSamples) {
    return false;
  }
  options_.calibration->Run(1);
  uncalibrated_ns_ = 0;
  uncalibrated_samples_ = 0;
  return true;
}

void CpuMonitor::Fill(proto::Conditions* conditions) {
  for (const int cpu : cpus_) conditions->add_cpus(cpu);
  const std::vector<std::string> load = absl::StrSplit(
      ReadFirstLine(absl::StrCat(options_.proc, "/loadavg")), ' ');
  double load_average;
  if (absl::SimpleAtod(load[0], &load_average)) {
    conditions->set_load_average(load_average);
  }
  if (total_elapsed_ns_ > 0) {
    const auto elapsed = static_cast<double>(total_elapsed_ns_);
    if (!threads_.empty()) {
      conditions->set_run_delay_fraction(
          static_cast<double>(total_run_delay_ns_) / elapsed);
    }
    if (stat_fd_ >= 0) {
      conditions->set_steal_fraction(static_cast<double>(total_steal_ticks_) *
                                     TickNs() / elapsed);
    }
  }
  if (usual_loop_ns_ > 0) {
    conditions->set_calibration_ratio(
        *std::max_element(loops_ns_.begin(), loops_ns_.end()) / usual_loop_ns_);
    proto::Calibration* arithmetic = conditions->add_calibrations();
    arithmetic->set_loop("arithmetic");
    arithmetic->set_time_ns(Median(loops_ns_));
    arithmetic->set_readings(static_cast<int>(loops_ns_.size()));
    arithmetic->set_fastest_ns(
        *std::min_element(loops_ns_.begin(), loops_ns_.end()));
  }
  conditions->set_governor(
      ReadFirstLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  if (options_.calibration != nullptr) {
    options_.calibration->Run(options_.calibration_turns);
    options_.calibration->Fill(conditions);
    options_.calibration->Forget();
  }
}

}  // namespace optrail::ops
