#include "base/process/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace optrail {
namespace {

constexpr char kParentPidVariable[] = "OPTRAIL_PARENT_PID";

std::vector<std::string> EnvironmentFor(const SubprocessOptions& options) {
  std::vector<std::string> result;
  auto is_overridden = [&](absl::string_view name) {
    if (name == kParentPidVariable) return true;
    for (const auto& [key, unused] : options.environment) {
      if (key == name) return true;
    }
    return false;
  };
  if (!options.clear_environment) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const absl::string_view text = *entry;
      if (!is_overridden(text.substr(0, text.find('=')))) {
        result.emplace_back(text);
      }
    }
  }
  for (const auto& [key, value] : options.environment) {
    result.push_back(absl::StrCat(key, "=", value));
  }
  result.push_back(absl::StrCat(kParentPidVariable, "=", getpid()));
  return result;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) {
    pointers.push_back(const_cast<char*>(s.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

void CloseDescriptor(int* fd) {
  if (*fd >= 0) close(std::exchange(*fd, -1));
}

absl::Status Pipe::Open() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) {
    return absl::ErrnoToStatus(errno, "creating a pipe");
  }
  read_fd = fds[0];
  write_fd = fds[1];
  return absl::OkStatus();
}

absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& argv,
                            const SubprocessOptions& options, const Pipe& in,
                            const Pipe& out, const Pipe& err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read_fd, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write_fd, STDOUT_FILENO);
  if (options.stderr_mode == StderrMode::kCapture) {
    posix_spawn_file_actions_adddup2(&actions, err.write_fd, STDERR_FILENO);
  } else if (options.stderr_mode == StderrMode::kDiscard) {
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
                                     O_WRONLY, 0);
  }
  // Descriptors that some library opened without CLOEXEC stay behind.
#if __GLIBC_PREREQ(2, 34)
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
#endif
  if (!options.working_directory.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions,
                                         options.working_directory.c_str());
  }

  // A group of its own, to be killed as a whole, and the signal dispositions of
  // a fresh process whatever the parent ignores or blocks.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int number :
       {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXFSZ}) {
    sigaddset(&defaults, number);
  }
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP |
                                            POSIX_SPAWN_SETSIGMASK |
                                            POSIX_SPAWN_SETSIGDEF);

  const std::vector<std::string> environment = EnvironmentFor(options);
  pid_t pid = -1;
  const int error_number =
      posix_spawnp(&pid, argv[0].c_str(), &actions, &attributes,
                   Pointers(argv).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error_number == 0) return pid;
  std::string what = absl::StrCat("starting ", argv[0]);
  if (!options.working_directory.empty()) {
    absl::StrAppend(&what, " in ", options.working_directory);
  }
  return absl::ErrnoToStatus(error_number, what);
}

void DieWithParent() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above.
  const char* parent = std::getenv(kParentPidVariable);
  int pid;
  if (parent != nullptr && absl::SimpleAtoi(parent, &pid) && getppid() != pid) {
    _exit(1);
  }
}

}  // namespace optrail
