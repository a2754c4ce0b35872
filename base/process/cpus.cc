#include "base/process/cpus.h"

#include <errno.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace optrail {
namespace {

// Machines with more than 1024 cores need a larger set than cpu_set_t.
constexpr int kMostCpus = 1 << 16;

}  // namespace

std::vector<int> UsableCpus() {
  std::vector<int> cpus;
  for (int capacity = 1024; capacity <= kMostCpus; capacity *= 4) {
    cpu_set_t* const set = CPU_ALLOC(capacity);
    const size_t bytes = CPU_ALLOC_SIZE(capacity);
    const bool ok = sched_getaffinity(0, bytes, set) == 0;
    for (int cpu = 0; ok && cpu < capacity; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, set)) cpus.push_back(cpu);
    }
    CPU_FREE(set);
    if (ok) break;
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

std::vector<int> ParseCpuList(const std::string& text) {
  std::vector<int> cpus;
  for (const absl::string_view part :
       absl::StrSplit(text, absl::ByAnyChar(",\n"), absl::SkipWhitespace())) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
    int first = 0, last = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
        !absl::SimpleAtoi(ends.back(), &last) || first < 0 ||
        last >= kMostCpus) {
      continue;
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<int> SiblingCpus(int cpu) {
  std::ifstream in(absl::StrCat("/sys/devices/system/cpu/cpu", cpu,
                                "/topology/thread_siblings_list"));
  std::string line;
  std::getline(in, line);
  std::vector<int> cpus = ParseCpuList(line);
  if (std::find(cpus.begin(), cpus.end(), cpu) == cpus.end()) {
    cpus.push_back(cpu);
  }
  return cpus;
}

absl::Status UseCpus(const std::vector<int>& cpus) {
  cpu_set_t* const set = CPU_ALLOC(kMostCpus);
  const size_t bytes = CPU_ALLOC_SIZE(kMostCpus);
  CPU_ZERO_S(bytes, set);
  for (const int cpu : cpus) {
    if (cpu >= 0 && cpu < kMostCpus) CPU_SET_S(cpu, bytes, set);
  }
  const bool ok = sched_setaffinity(0, bytes, set) == 0;
  const int error_number = errno;
  CPU_FREE(set);
  if (ok) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot pin this thread to core ",
                                             absl::StrJoin(cpus, ","), ": ",
                                             std::strerror(error_number)));
}

}  // namespace optrail
