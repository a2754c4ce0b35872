#include "base/core_waits.h"

#include <dirent.h>

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace optrail {
namespace {

// The folders of /proc that are named by numbers.
std::vector<pid_t> NumbersIn(const std::string& folder) {
  std::vector<pid_t> numbers;
  DIR* const dir = opendir(folder.c_str());
  if (dir == nullptr) return numbers;
  while (const dirent* entry = readdir(dir)) {
    pid_t number;
    if (absl::SimpleAtoi(entry->d_name, &number)) numbers.push_back(number);
  }
  closedir(dir);
  return numbers;
}

}  // namespace

CoreWaits::CoreWaits(pid_t pid, std::string proc)
    : pid_(pid), proc_(std::move(proc)), before_(Read()) {}

std::map<pid_t, int64_t> CoreWaits::Read() const {
  std::map<pid_t, int64_t> waited_ns;
  std::vector<pid_t> processes = {pid_};
  for (size_t i = 0; i < processes.size(); ++i) {
    const std::string tasks = absl::StrCat(proc_, "/", processes[i], "/task");
    for (const pid_t thread : NumbersIn(tasks)) {
      const std::string task = absl::StrCat(tasks, "/", thread);
      // "time on a core, time waiting for one, time slices"
      std::ifstream schedstat(task + "/schedstat");
      int64_t run_ns = 0, wait_ns = 0;
      if (!(schedstat >> run_ns >> wait_ns)) continue;
      // Numbers are given anew: each thread is looked at once.
      if (!waited_ns.emplace(thread, wait_ns).second) continue;
      std::ifstream children(task + "/children");
      for (pid_t child; children >> child;) processes.push_back(child);
    }
  }
  return waited_ns;
}

absl::Duration CoreWaits::Longest() const {
  int64_t longest_ns = 0;
  for (const auto& [thread, waited_ns] : Read()) {
    const auto before = before_.find(thread);
    // Another thread may have got the number of one that ended.
    const bool same = before != before_.end() && before->second <= waited_ns;
    longest_ns = std::max(longest_ns, waited_ns - (same ? before->second : 0));
  }
  return absl::Nanoseconds(longest_ns);
}

}  // namespace optrail
