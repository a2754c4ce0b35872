#ifndef OPTRAIL_BASE_PROCESS_PROCESS_TREE_H_
#define OPTRAIL_BASE_PROCESS_PROCESS_TREE_H_

// A process and all that it started, with their threads, as Linux lists them:
// at a cost of the tree's size and not of the machine's.
//
//   for (const TreeProcess& process : ListProcessTree(pid).processes) {
//     for (const pid_t thread : process.threads) Look(process.pid, thread);
//   }

#include <sys/types.h>

#include <string>
#include <vector>

namespace optrail {

struct TreeProcess {
  pid_t pid = 0;
  std::vector<pid_t> threads;
};

struct ProcessTree {
  // The root first. What ended or began meanwhile may be missing; each thread
  // is there once, though numbers are given anew.
  std::vector<TreeProcess> processes;
  // Whether the kernel lists children (CONFIG_PROC_CHILDREN); where it does
  // not, the root is alone.
  bool lists_children = false;
};

ProcessTree ListProcessTree(pid_t root, const std::string& proc = "/proc");

}  // namespace optrail

#endif  // OPTRAIL_BASE_PROCESS_PROCESS_TREE_H_
