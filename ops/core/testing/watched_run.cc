#include "ops/core/testing/watched_run.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

ABSL_FLAG(absl::Duration, config_deadline, absl::Seconds(60),
          "a config that has not answered by then hangs");

ABSL_FLAG(
    bool, watched, true,
    "in a process of their own, so that the config that ends it is named; "
    "not for tools that look into one process");

namespace optrail::ops {
namespace {

// What the process that watches this one can say of its end.
struct Watched {
  char config[4000];  // that is running; empty: none
  bool finished;
};
Watched* watched = nullptr;

}  // namespace

int WatchTests(const std::function<int()>& run_tests) {
  watched = static_cast<Watched*>(mmap(nullptr, sizeof(Watched),
                                       PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (!absl::GetFlag(FLAGS_watched)) return run_tests();
  // Nothing has been started yet that a fork would leave behind.
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int code = run_tests();
    watched->finished = true;
    return code;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  if (watched->finished) return code;
  std::cout << "FAILED: "
            << (watched->config[0] != '\0' ? watched->config
                                           : "outside of any config")
            << ": the process "
            << (WIFSIGNALED(status)
                    ? absl::StrCat("was killed by signal ", WTERMSIG(status))
                    : absl::StrCat("exited with code ", code))
            << std::endl;
  return code == 0 ? 1 : code;
}

ConfigScope::ConfigScope(const std::string& what)
    : what_(what), thread_([this] { Watch(); }) {
  what.copy(watched->config, sizeof(watched->config) - 1);
}

ConfigScope::~ConfigScope() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  thread_.join();
  std::memset(watched->config, 0, sizeof(watched->config));
}

void ConfigScope::Watch() {
  const absl::Duration deadline = absl::GetFlag(FLAGS_config_deadline);
  std::unique_lock<std::mutex> lock(mutex_);
  if (changed_.wait_for(lock, absl::ToChronoMilliseconds(deadline),
                        [this] { return done_; })) {
    return;
  }
  std::cout << "FAILED: " << what_ << ": no answer within "
            << absl::FormatDuration(deadline) << std::endl;
  watched->finished = true;  // and said
  std::_Exit(1);
}

}  // namespace optrail::ops
