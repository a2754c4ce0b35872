#include "base/process/process_guard.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "base/file/file.h"
#include "base/process/memory_group.h"
#include "base/process/process_tree.h"

extern char** environ;

namespace optrail {
namespace {

constexpr char kParentPidVariable[] = "OPTRAIL_PARENT_PID";
// Between two looks at the memory of the tree.
constexpr int kLookMs = 20;
// A tree that forks faster than it is killed is given up after so many rounds.
constexpr int kKillRounds = 500;

struct Process {
  pid_t parent = 0;
  int64_t resident_bytes = 0;
};

// Every process of the machine that we may see.
std::map<pid_t, Process> Processes() {
  std::map<pid_t, Process> processes;
  DIR* const folder = opendir("/proc");
  if (folder == nullptr) return processes;
  const int64_t page_bytes = sysconf(_SC_PAGESIZE);
  while (const dirent* const entry = readdir(folder)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry->d_name, &pid)) continue;
    std::FILE* const file =
        std::fopen(absl::StrCat("/proc/", pid, "/stat").c_str(), "re");
    if (file == nullptr) continue;
    char line[2048];
    const size_t size = std::fread(line, 1, sizeof(line) - 1, file);
    std::fclose(file);
    line[size] = '\0';
    // The name, in parentheses, may hold anything.
    const char* const rest = strrchr(line, ')');
    if (rest == nullptr) continue;
    char state = 0;
    int parent = 0;
    long long resident_pages = 0;
    // Fields 3, 4 and 24.
    if (std::sscanf(rest + 1,
                    " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d "
                    "%*d %*d %*d %*d %*d %*u %*u %lld",
                    &state, &parent, &resident_pages) != 3) {
      continue;
    }
    // One that has ended is only waited for.
    if (state == 'Z' || state == 'X') continue;
    processes[pid] = {parent, resident_pages * page_bytes};
  }
  closedir(folder);
  return processes;
}

std::vector<pid_t> Descendants(pid_t root,
                               const std::map<pid_t, Process>& processes) {
  std::vector<pid_t> tree = {root};
  for (size_t i = 0; i < tree.size(); ++i) {
    for (const auto& [pid, process] : processes) {
      if (process.parent == tree[i]) tree.push_back(pid);
    }
  }
  tree.erase(tree.begin());
  return tree;
}

// "" where it is gone.
std::string TextOf(const std::string& path) {
  return ReadFile(path).value_or("");
}

// The descendants of `root`; nullopt if the kernel does not list children.
absl::optional<std::vector<pid_t>> ListBelow(pid_t root) {
  const ProcessTree tree = ListProcessTree(root);
  if (!tree.lists_children) return absl::nullopt;
  std::vector<pid_t> below;
  for (const TreeProcess& process : tree.processes) {
    if (process.pid != root) below.push_back(process.pid);
  }
  return below;
}

int64_t TreeBytes() {
  int64_t bytes = 0;
  if (const auto tree = ListBelow(getpid())) {
    const int64_t page_bytes = sysconf(_SC_PAGESIZE);
    for (const pid_t pid : *tree) {
      long long resident_pages = 0;
      const std::string sizes = TextOf(absl::StrCat("/proc/", pid, "/statm"));
      if (std::sscanf(sizes.c_str(), "%*d %lld", &resident_pages) == 1) {
        bytes += resident_pages * page_bytes;
      }
    }
    return bytes;
  }
  const std::map<pid_t, Process> processes = Processes();
  for (const pid_t pid : Descendants(getpid(), processes)) {
    bytes += processes.at(pid).resident_bytes;
  }
  return bytes;
}

void KillTree() {
  for (int round = 0; round < kKillRounds; ++round) {
    const std::vector<pid_t> tree = Descendants(getpid(), Processes());
    // Orphans come to us, their reaper: in the next round they are children.
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (tree.empty()) return;
    // All stop before the first is gone, so that none starts another.
    for (const pid_t pid : tree) kill(pid, SIGSTOP);
    for (const pid_t pid : tree) kill(pid, SIGKILL);
    usleep(1000);
  }
}

[[noreturn]] void EndAs(int wait_status) {
  if (WIFEXITED(wait_status)) {
    const int code = WEXITSTATUS(wait_status);
    _exit(code == kGuardOutOfMemoryCode ? code - 1 : code);
  }
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  signal(WTERMSIG(wait_status), SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  raise(WTERMSIG(wait_status));
  _exit(128 + WTERMSIG(wait_status));
}

}  // namespace

std::vector<std::string> GuardedArguments(
    const std::string& binary, int64_t max_resident_bytes,
    const std::vector<std::string>& argv) {
  std::vector<std::string> guarded = {
      binary, absl::StrCat(kProcessGuardFlag, max_resident_bytes)};
  guarded.insert(guarded.end(), argv.begin(), argv.end());
  return guarded;
}

void SignalGuarded(pid_t guard, int number) {
  std::set<pid_t> signalled;
  // One that is being started while its parent stops is seen the next time.
  for (size_t before = 1; before != signalled.size();) {
    before = signalled.size();
    const auto listed = ListBelow(guard);
    for (const pid_t pid : listed ? *listed : Descendants(guard, Processes())) {
      if (signalled.insert(pid).second) kill(pid, number);
    }
    if (signalled.empty()) return;
  }
}

bool IsProcessGuard(int argc, char** argv) {
  return argc >= 3 && absl::StartsWith(argv[1], kProcessGuardFlag);
}

namespace {

// Starts the guarded command with no signal blocked; 0 or an error's number.
int StartGuarded(char** command, pid_t* child) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const int error_number =
      posix_spawnp(child, command[0], nullptr, &attributes, command, environ);
  posix_spawnattr_destroy(&attributes);
  return error_number;
}

// A descriptor of the process that started this one; negative if it has ended.
int OpenParent() {
  const char* const text = getenv(kParentPidVariable);
  pid_t parent = 0;
  if (text == nullptr || !absl::SimpleAtoi(text, &parent)) parent = getppid();
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, parent, 0));
  // It may have died before the line above.
  return getppid() == parent ? fd : -1;
}

// A descriptor of the signals that are waited for, which are blocked.
int WatchSignals() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    sigaddset(&watched, number);
  }
  sigprocmask(SIG_BLOCK, &watched, nullptr);
  return signalfd(-1, &watched, SFD_CLOEXEC);
}

}  // namespace

int RunProcessGuard(int argc, char** argv) {
  int64_t max_resident_bytes = 0;
  if (!absl::SimpleAtoi(argv[1] + sizeof(kProcessGuardFlag) - 1,
                        &max_resident_bytes)) {
    std::fprintf(stderr, "process guard: %s: expected a number of bytes\n",
                 argv[1]);
    return 2;
  }
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const int parent_fd = OpenParent();
  if (parent_fd < 0) return 1;
  const int signals = WatchSignals();
  // Where the kernel limits the tree, nobody needs to look.
  std::unique_ptr<MemoryGroup> group;
  if (max_resident_bytes > 0) {
    group = MemoryGroup::Enter(max_resident_bytes).value_or(nullptr);
  }
  setenv(kParentPidVariable, absl::StrCat(getpid()).c_str(), 1);
  pid_t child = -1;
  const int error_number = StartGuarded(argv + 2, &child);
  if (group != nullptr) (void)group->Leave();
  if (error_number != 0) {
    std::fprintf(stderr, "process guard: starting %s: %s\n", argv[2],
                 strerror(error_number));
    return 127;
  }
  const auto is_above = [&] {
    if (max_resident_bytes <= 0) return false;
    return group != nullptr ? group->WasExceeded()
                            : TreeBytes() > max_resident_bytes;
  };
  while (true) {
    pollfd polled[2] = {{signals, POLLIN, 0}, {parent_fd, POLLIN, 0}};
    const int ready = poll(polled, 2, max_resident_bytes > 0 ? kLookMs : -1);
    if (ready < 0 && errno != EINTR) break;
    if (ready > 0 && polled[1].revents != 0) break;
    if (ready > 0 && polled[0].revents != 0) {
      signalfd_siginfo info;
      if (read(signals, &info, sizeof(info)) != sizeof(info)) break;
      if (info.ssi_signo != SIGCHLD) break;
      int status = 0;
      pid_t ended;
      while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
        if (ended != child) continue;
        KillTree();
        if (is_above()) break;
        group.reset();
        EndAs(status);
      }
    }
    if (is_above()) {
      KillTree();
      group.reset();
      _exit(kGuardOutOfMemoryCode);
    }
  }
  KillTree();
  group.reset();
  _exit(128 + SIGTERM);
}

}  // namespace optrail
