#ifndef OPTRAIL_BASE_PROCESS_MEMORY_GROUP_H_
#define OPTRAIL_BASE_PROCESS_MEMORY_GROUP_H_

// A control group of the kernel that limits the memory of a tree of processes,
// where this process may make one: unlike looking at resident sizes from time
// to time, no allocation goes beyond it, and pages that processes share count
// once. What the page cache holds for them counts, and is given back first.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<MemoryGroup> group,
//                            MemoryGroup::Enter(1 << 30));
//   const auto child = Subprocess::Start({"./program"});  // and its children
//   OPTRAIL_RETURN_IF_ERROR(group->Leave());             // not this process
//   if (child.ok()) (*child)->Wait(absl::Minutes(1));
//   if (group->WasExceeded()) return absl::ResourceExhaustedError("program");
//
// Both versions of control groups are used as they are found mounted, see
// cgroups(7): below the group of this process or, since version 2 wants
// processes in leaves only, beside it.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail {

// The place in the file system of control groups where a group may be made.
struct MemoryGroupPlace {
  std::string folder;
  std::string own;       // the folder of the group that the process is in
  bool unified = false;  // version 2
};

// The places for a process with these /proc/self/cgroup and
// /proc/self/mountinfo, best first; whether they permit it is not looked at.
std::vector<MemoryGroupPlace> MemoryGroupPlaces(absl::string_view groups,
                                                absl::string_view mounts);

class MemoryGroup {
 public:
  // Makes one and moves this process there.
  // PermissionDenied or NotFound: there can be none here, and why.
  static absl::StatusOr<std::unique_ptr<MemoryGroup>> Enter(
      int64_t limit_bytes);

  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;
  // Removes it; the processes in it must have ended. What one that was killed
  // left behind is removed by the next Enter.
  ~MemoryGroup();

  // Moves this process to where it was before.
  absl::Status Leave();
  // Whether the kernel has killed for want of memory in it.
  bool WasExceeded() const;

 private:
  MemoryGroup(MemoryGroupPlace place, std::string folder)
      : place_(std::move(place)), folder_(std::move(folder)) {}

  const MemoryGroupPlace place_;
  const std::string folder_;
};

}  // namespace optrail

#endif  // OPTRAIL_BASE_PROCESS_MEMORY_GROUP_H_
