#include "base/process/memory_group.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file/file.h"
#include "base/status_macros.h"

namespace optrail {
namespace {

constexpr char kPrefix[] = "optrail-";

// Files of the kernel: neither created nor replaced.
absl::Status Write(const std::string& path, absl::string_view text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  const ssize_t written = write(fd, text.data(), text.size());
  const int error_number = errno;
  close(fd);
  if (written != static_cast<ssize_t>(text.size())) {
    return absl::ErrnoToStatus(error_number, path);
  }
  return absl::OkStatus();
}

std::string TextOf(const std::string& path) {
  return ReadFile(path).value_or("");
}

std::vector<std::string> Words(absl::string_view text) {
  return absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
}

bool Holds(const std::vector<std::string>& words, absl::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The group of /proc/self/cgroup for the controller ("" in version 2), or "".
std::string GroupOf(absl::string_view groups, absl::string_view controller) {
  for (const absl::string_view line : absl::StrSplit(groups, '\n')) {
    const std::vector<absl::string_view> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const std::vector<absl::string_view> controllers =
        absl::StrSplit(fields[1], ',');
    for (const absl::string_view name : controllers) {
      if (name == controller) return std::string(fields[2]);
    }
  }
  return "";
}

// The folder of `group` where the file system of this type, with this option,
// is mounted; "" where it is not, or the group lies outside of what is.
std::string FolderOf(absl::string_view mounts, absl::string_view type,
                     absl::string_view option, absl::string_view group) {
  if (group.empty() || absl::StartsWith(group, "/..")) return "";
  for (const absl::string_view line : absl::StrSplit(mounts, '\n')) {
    const std::vector<absl::string_view> halves =
        absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    if (halves.size() != 2) continue;
    const std::vector<absl::string_view> mount = absl::StrSplit(halves[0], ' ');
    const std::vector<absl::string_view> system =
        absl::StrSplit(halves[1], ' ');
    if (mount.size() < 6 || system.size() < 3 || system[0] != type) continue;
    const std::vector<std::string> options = absl::StrSplit(system[2], ',');
    if (!option.empty() && !Holds(options, option)) continue;
    absl::string_view below = group;
    if (mount[3] != "/" && !absl::ConsumePrefix(&below, mount[3])) continue;
    if (!below.empty() && below[0] != '/') continue;
    return std::string(absl::StripSuffix(absl::StrCat(mount[4], below), "/"));
  }
  return "";
}

// Groups of ours whose process has ended, empty or not made use of yet: one
// that still holds processes is not removed by the kernel.
void RemoveLeftOnes(const std::string& folder) {
  for (const std::string& name :
       ListDirectory(folder).value_or(std::vector<std::string>())) {
    absl::string_view rest = name;
    pid_t pid = 0;
    if (!absl::ConsumePrefix(&rest, kPrefix) ||
        !absl::SimpleAtoi(rest.substr(0, rest.find('-')), &pid)) {
      continue;
    }
    if (kill(pid, 0) != 0 && errno == ESRCH) {
      (void)rmdir(absl::StrCat(folder, "/", name).c_str());
    }
  }
}

absl::Status Limit(const MemoryGroupPlace& place, const std::string& folder,
                   int64_t bytes) {
  const std::string text = absl::StrCat(bytes);
  if (place.unified) {
    OPTRAIL_RETURN_IF_ERROR(Write(folder + "/memory.max", text));
    // Without these it is slower to end, and says so later.
    (void)Write(folder + "/memory.swap.max", "0");
    (void)Write(folder + "/memory.oom.group", "1");
    return absl::OkStatus();
  }
  OPTRAIL_RETURN_IF_ERROR(Write(folder + "/memory.limit_in_bytes", text));
  (void)Write(folder + "/memory.memsw.limit_in_bytes", text);
  return absl::OkStatus();
}

}  // namespace

std::vector<MemoryGroupPlace> MemoryGroupPlaces(absl::string_view groups,
                                                absl::string_view mounts) {
  std::vector<MemoryGroupPlace> places;
  const std::string first =
      FolderOf(mounts, "cgroup", "memory", GroupOf(groups, "memory"));
  if (!first.empty()) places.push_back({first, first, false});
  const std::string group = GroupOf(groups, "");
  const std::string second = FolderOf(mounts, "cgroup2", "", group);
  if (!second.empty()) {
    places.push_back({second, second, true});
    if (group != "/") {
      places.push_back({second.substr(0, second.rfind('/')), second, true});
    }
  }
  return places;
}

absl::StatusOr<std::unique_ptr<MemoryGroup>> MemoryGroup::Enter(
    int64_t limit_bytes) {
  const std::vector<MemoryGroupPlace> places = MemoryGroupPlaces(
      TextOf("/proc/self/cgroup"), TextOf("/proc/self/mountinfo"));
  if (places.empty()) {
    return absl::NotFoundError(
        "no file system of control groups for memory is mounted");
  }
  static std::atomic<int> made{0};
  const std::string name = absl::StrCat(kPrefix, getpid(), "-", ++made);
  std::vector<std::string> why;
  for (const MemoryGroupPlace& place : places) {
    if (place.unified &&
        !Holds(Words(TextOf(place.folder + "/cgroup.subtree_control")),
               "memory")) {
      why.push_back(
          absl::StrCat(place.folder, " passes no memory controller to groups"));
      continue;
    }
    RemoveLeftOnes(place.folder);
    const std::string folder = absl::StrCat(place.folder, "/", name);
    if (mkdir(folder.c_str(), 0755) != 0) {
      why.push_back(std::string(absl::ErrnoToStatus(errno, folder).message()));
      continue;
    }
    auto group = absl::WrapUnique(new MemoryGroup(place, folder));
    absl::Status entered = Limit(place, folder, limit_bytes);
    if (entered.ok()) {
      entered = Write(folder + "/cgroup.procs", absl::StrCat(getpid()));
    }
    if (entered.ok()) return group;
    why.push_back(std::string(entered.message()));
  }
  return absl::PermissionDeniedError(absl::StrJoin(why, "; "));
}

MemoryGroup::~MemoryGroup() {
  // What was killed a moment ago may not be gone yet.
  for (int tries = 0; tries < 100 && rmdir(folder_.c_str()) != 0; ++tries) {
    if (errno != EBUSY) return;
    usleep(10'000);
  }
}

absl::Status MemoryGroup::Leave() {
  return Write(place_.own + "/cgroup.procs", absl::StrCat(getpid()));
}

bool MemoryGroup::WasExceeded() const {
  const std::vector<std::string> words = Words(TextOf(
      folder_ + (place_.unified ? "/memory.events" : "/memory.oom_control")));
  const auto kills = std::find(words.begin(), words.end(), "oom_kill");
  return kills != words.end() && kills + 1 != words.end() && kills[1] != "0";
}

}  // namespace optrail
