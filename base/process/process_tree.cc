#include "base/process/process_tree.h"

#include <dirent.h>

#include <set>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/file/file.h"

namespace optrail {
namespace {

// Entries of a folder of /proc that are numbers.
std::vector<pid_t> NumbersIn(const std::string& folder) {
  std::vector<pid_t> numbers;
  DIR* const dir = opendir(folder.c_str());
  if (dir == nullptr) return numbers;  // the process has ended
  while (const dirent* const entry = readdir(dir)) {
    pid_t number = 0;
    if (absl::SimpleAtoi(entry->d_name, &number)) numbers.push_back(number);
  }
  closedir(dir);
  return numbers;
}

}  // namespace

ProcessTree ListProcessTree(pid_t root, const std::string& proc) {
  ProcessTree tree;
  std::set<pid_t> seen;
  std::vector<pid_t> pids = {root};
  for (size_t i = 0; i < pids.size(); ++i) {
    TreeProcess process;
    process.pid = pids[i];
    const std::string tasks = absl::StrCat(proc, "/", pids[i], "/task");
    for (const pid_t thread : NumbersIn(tasks)) {
      if (!seen.insert(thread).second) continue;
      process.threads.push_back(thread);
      const absl::StatusOr<std::string> children =
          ReadFile(absl::StrCat(tasks, "/", thread, "/children"));
      if (!children.ok()) continue;
      tree.lists_children = true;
      for (const absl::string_view text : absl::StrSplit(
               *children, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
        pid_t pid = 0;
        if (absl::SimpleAtoi(text, &pid)) pids.push_back(pid);
      }
    }
    // One that is there twice has no threads the second time.
    if (i == 0 || !process.threads.empty()) tree.processes.push_back(process);
  }
  return tree;
}

}  // namespace optrail
