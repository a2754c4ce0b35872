// How long the command line takes to start: a fresh process each time.
//
//   bazel run //cli:startup_benchmark

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/check.h"
#include "benchmark/benchmark.h"

extern char** environ;

namespace optrail::cli {
namespace {

// The binary beside this one.
std::string Optrail() {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self));
  OPTRAIL_CHECK(length > 0);
  const std::string path(self, static_cast<size_t>(length));
  return path.substr(0, path.rfind('/')) + "/optrail";
}

void Run(benchmark::State& state, std::vector<std::string> command) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
  for (auto _ : state) {
    pid_t pid;
    OPTRAIL_CHECK(posix_spawn(&pid, arguments[0], &quiet, nullptr,
                              arguments.data(), environ) == 0)
        << command[0];
    int status;
    OPTRAIL_CHECK(waitpid(pid, &status, 0) == pid);
  }
  posix_spawn_file_actions_destroy(&quiet);
}

void BM_Help(benchmark::State& state) { Run(state, {Optrail(), "help"}); }
BENCHMARK(BM_Help)->UseRealTime()->Unit(benchmark::kMillisecond);

void BM_HelpOfOneCommand(benchmark::State& state) {
  Run(state, {Optrail(), "help", "tune"});
}
BENCHMARK(BM_HelpOfOneCommand)->UseRealTime()->Unit(benchmark::kMillisecond);

// The cost of spawning alone.
void BM_True(benchmark::State& state) { Run(state, {"/bin/true"}); }
BENCHMARK(BM_True)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace optrail::cli
