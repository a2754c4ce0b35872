#include "suites/disturbance.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace optrail::suites {
namespace {

// Kept in registers, so that only the core's speed matters; some 3 us.
int64_t TimeCalibrationLoopNs() {
  const auto start = std::chrono::steady_clock::now();
  uint64_t x = 1;
  for (int i = 0; i < 2000; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    asm volatile("" : "+r"(x));
  }
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now() - start)
      .count();
}

double TickNs() { return 1e9 / static_cast<double>(sysconf(_SC_CLK_TCK)); }

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  ssize_t n;
  while ((n = pread(fd, buffer, sizeof(buffer),
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

ProcDisturbanceMonitor::ProcDisturbanceMonitor(std::string proc)
    : proc_(std::move(proc)) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &cpus)) cpus_.insert(cpu);
    }
  }
  const std::string tasks = absl::StrCat(proc_, "/self/task");
  if (DIR* dir = opendir(tasks.c_str()); dir != nullptr) {
    while (const dirent* entry = readdir(dir)) {
      if (entry->d_name[0] == '.') continue;
      const std::string path =
          absl::StrCat(tasks, "/", entry->d_name, "/schedstat");
      const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (fd >= 0) schedstat_fds_.push_back(fd);
    }
    closedir(dir);
  }
  stat_fd_ = open(absl::StrCat(proc_, "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  for (int i = 0; i < 20; ++i) {
    const int64_t ns = TimeCalibrationLoopNs();
    if (calibration_best_ns_ == 0 || ns < calibration_best_ns_) {
      calibration_best_ns_ = ns;
    }
  }
}

ProcDisturbanceMonitor::~ProcDisturbanceMonitor() {
  for (int fd : schedstat_fds_) close(fd);
  if (stat_fd_ >= 0) close(stat_fd_);
}

int64_t ProcDisturbanceMonitor::ReadRunDelayNs() const {
  int64_t total = 0;
  for (int fd : schedstat_fds_) {
    const std::vector<std::string> fields =
        absl::StrSplit(ReadAll(fd), ' ', absl::SkipEmpty());
    int64_t delay_ns;
    if (fields.size() >= 2 && absl::SimpleAtoi(fields[1], &delay_ns)) {
      total += delay_ns;
    }
  }
  return total;
}

int64_t ProcDisturbanceMonitor::ReadStealTicks() const {
  if (stat_fd_ < 0) return 0;
  // "cpu3 user nice system idle iowait irq softirq steal ..."; cores that this
  // process may not use are somebody else's affair.
  int64_t total = 0;
  const std::string text = ReadAll(stat_fd_);
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, "cpu")) break;
    const std::vector<absl::string_view> fields =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    int cpu;
    int64_t steal;
    if (fields.size() >= 9 && absl::SimpleAtoi(fields[0].substr(3), &cpu) &&
        cpus_.count(cpu) > 0 && absl::SimpleAtoi(fields[8], &steal)) {
      total += steal;
    }
  }
  return total;
}

void ProcDisturbanceMonitor::BeginSample() {
  run_delay_before_ns_ = ReadRunDelayNs();
  steal_before_ticks_ = ReadStealTicks();
}

bool ProcDisturbanceMonitor::EndSample(int64_t elapsed_ns) {
  const int64_t calibration_ns = TimeCalibrationLoopNs();
  const int64_t run_delay_ns = ReadRunDelayNs() - run_delay_before_ns_;
  const int64_t steal_ticks = ReadStealTicks() - steal_before_ticks_;
  total_elapsed_ns_ += elapsed_ns;
  total_run_delay_ns_ += run_delay_ns;
  total_steal_ticks_ += steal_ticks;
  calibration_best_ns_ = std::min(calibration_best_ns_, calibration_ns);
  calibration_worst_ns_ = std::max(calibration_worst_ns_, calibration_ns);

  const bool waited =
      run_delay_ns > kMaxRunDelayNs &&
      static_cast<double>(run_delay_ns) >
          kMaxRunDelayFraction * static_cast<double>(elapsed_ns);
  const bool slow_core =
      static_cast<double>(calibration_ns) >
      kMaxCalibrationRatio * static_cast<double>(calibration_best_ns_);
  // One tick is longer than most samples: then any steal disturbs.
  const bool stolen = static_cast<double>(steal_ticks) * TickNs() >
                      kMaxRunDelayFraction * static_cast<double>(elapsed_ns);
  return waited || stolen || slow_core;
}

void ProcDisturbanceMonitor::FillConditions(
    proto::Conditions* conditions) const {
  for (const int cpu : cpus_) conditions->add_cpus(cpu);
  const std::vector<std::string> load =
      absl::StrSplit(ReadFirstLine(absl::StrCat(proc_, "/loadavg")), ' ');
  double load_average;
  if (absl::SimpleAtod(load[0], &load_average)) {
    conditions->set_load_average(load_average);
  }
  if (total_elapsed_ns_ > 0) {
    const double elapsed_ns = static_cast<double>(total_elapsed_ns_);
    if (!schedstat_fds_.empty()) {
      conditions->set_run_delay_fraction(
          static_cast<double>(total_run_delay_ns_) / elapsed_ns);
    }
    if (stat_fd_ >= 0) {
      const double tick_ns = 1e9 / static_cast<double>(sysconf(_SC_CLK_TCK));
      conditions->set_steal_fraction(static_cast<double>(total_steal_ticks_) *
                                     tick_ns / elapsed_ns);
    }
  }
  if (calibration_worst_ns_ > 0) {
    conditions->set_calibration_ratio(
        static_cast<double>(calibration_worst_ns_) /
        static_cast<double>(calibration_best_ns_));
  }
  conditions->set_governor(
      ReadFirstLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
}

std::string ProcDisturbanceMonitor::Describe() const {
  return absl::StrCat(
      "run delay: ",
      schedstat_fds_.empty() ? "unsupported here: no /proc/*/schedstat"
                             : "watched",
      "; steal: ", stat_fd_ < 0 ? "unsupported here: no /proc/stat" : "watched",
      "; calibration loop: watched");
}

}  // namespace optrail::suites
