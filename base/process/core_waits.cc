#include "base/process/core_waits.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process/process_tree.h"

namespace optrail {
CoreWaits::CoreWaits(pid_t pid, std::string proc)
    : pid_(pid), proc_(std::move(proc)), before_(Read()) {}

std::map<pid_t, int64_t> CoreWaits::Read() const {
  std::map<pid_t, int64_t> waited_ns;
  for (const TreeProcess& process : ListProcessTree(pid_, proc_).processes) {
    for (const pid_t thread : process.threads) {
      // "time on a core, time waiting for one, time slices"
      std::ifstream schedstat(absl::StrCat(proc_, "/", process.pid, "/task/",
                                           thread, "/schedstat"));
      int64_t run_ns = 0, wait_ns = 0;
      if (schedstat >> run_ns >> wait_ns) waited_ns[thread] = wait_ns;
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
