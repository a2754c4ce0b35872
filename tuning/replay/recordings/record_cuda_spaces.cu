// Records tuning spaces of CUDA kernels: every config is compiled, checked
// against a plain kernel and timed.
//
//   record_cuda_spaces KERNEL_DIR LOG SECONDS COMPILERS SPACE[:LIMIT]...
//
// It appends a line per config and size to LOG (recording_log.h) and leaves out
// configs that LOG has already, so that a run that was stopped can go on. It
// ends after SECONDS. LIMIT: only so many configs, drawn at random.
// SHOW_COMPILE_ERRORS in the environment prints why configs don't compile.
//
// COMPILERS processes compile; one process times, so that it alone touches the
// GPU; this one watches them: a compiler that crashes or hangs is a failed
// compilation, a timer that does is a failed run.

#include <cuda_runtime.h>
#include <fcntl.h>
#include <nvrtc.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <new>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tuning/replay/recordings/config_timer.h"
#include "tuning/replay/recordings/problems.h"
#include "tuning/replay/recordings/recording_log.h"
#include "tuning/replay/recordings/spaces.h"

namespace optrail::tuning::recordings {
namespace {

constexpr int kCompileSeconds = 60;
constexpr int kTimerSeconds = 20;
constexpr int kMaxIdleDeaths = 3;
constexpr int kMaxCompilers = 64;

double NowSeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Job {
  const Space* space;
  Config config;
};

// Between the processes.
struct Shared {
  std::atomic<int> next_job;
  std::atomic<int> timed_jobs;
  std::atomic<int> compiling[kMaxCompilers];  // job, or -1
  std::atomic<int> timing;                    // job, or -1
  std::atomic<double> timer_alive;
};

struct Recorder {
  std::string kernel_dir;
  std::string log_path;
  std::string cubin_dir;
  int compilers = 1;
  std::vector<Job> jobs;
  Shared* shared = nullptr;
  int pipe_read = -1;
  int pipe_write = -1;

  std::string SourcePath(const Space& space) const {
    return kernel_dir + "/" + space.name + ".cu";
  }
  std::string CubinPath(int job) const {
    return cubin_dir + "/" + std::to_string(job) + ".cubin";
  }
};

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void AppendLog(const std::string& path, const std::string& lines) {
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0644);
  if (file < 0 || write(file, lines.data(), lines.size()) !=
                      static_cast<ssize_t>(lines.size())) {
    std::perror(path.c_str());
    std::exit(1);
  }
  close(file);
}

// --- compilers ---

// An empty text after a failure.
std::string Compile(const std::string& source, const Job& job) {
  std::vector<std::string> options = {"--gpu-architecture=sm_90a",
                                      "--std=c++17", "-default-device"};
  for (size_t i = 0; i < job.config.size(); ++i) {
    std::string macro = job.space->knobs[i].name;
    for (char& c : macro) c = std::toupper(static_cast<unsigned char>(c));
    options.push_back("-D" + macro + "=" + std::to_string(job.config[i]));
  }
  std::vector<const char*> arguments;
  for (const std::string& option : options) {
    arguments.push_back(option.c_str());
  }
  nvrtcProgram program;
  if (nvrtcCreateProgram(&program, source.c_str(), job.space->name.c_str(), 0,
                         nullptr, nullptr) != NVRTC_SUCCESS) {
    return "";
  }
  std::string cubin;
  size_t bytes = 0;
  if (nvrtcCompileProgram(program, arguments.size(), arguments.data()) ==
          NVRTC_SUCCESS &&
      nvrtcGetCUBINSize(program, &bytes) == NVRTC_SUCCESS) {
    cubin.resize(bytes);
    if (nvrtcGetCUBIN(program, cubin.data()) != NVRTC_SUCCESS) cubin.clear();
  } else if (std::getenv("SHOW_COMPILE_ERRORS") != nullptr) {
    nvrtcGetProgramLogSize(program, &bytes);
    std::string log(bytes, '\0');
    nvrtcGetProgramLog(program, log.data());
    std::fprintf(stderr, "%s %s: %s\n", job.space->name.c_str(),
                 ConfigKey(job.config).c_str(), log.c_str());
  }
  nvrtcDestroyProgram(&program);
  return cubin;
}

// The file is the compile time (a double) and the cubin, which is empty if the
// compilation failed.
void HandOver(const Recorder& recorder, int job, double compile_ms,
              const std::string& cubin) {
  const std::string path = recorder.CubinPath(job);
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&compile_ms), sizeof(compile_ms));
  out.write(cubin.data(), cubin.size());
  out.close();
  if (write(recorder.pipe_write, &job, sizeof(job)) != sizeof(job)) {
    std::perror("pipe");
    std::exit(1);
  }
}

[[noreturn]] void RunCompiler(const Recorder& recorder, int slot) {
  // The process that times comes first.
  if (nice(10) == -1) std::perror("nice");
  std::map<const Space*, std::string> sources;
  Shared& shared = *recorder.shared;
  while (true) {
    const int index = shared.next_job.fetch_add(1);
    if (index >= static_cast<int>(recorder.jobs.size())) _exit(0);
    shared.compiling[slot] = index;
    const Job& job = recorder.jobs[index];
    std::string& source = sources[job.space];
    if (source.empty()) {
      source = ReadFile(recorder.SourcePath(*job.space));
    }
    alarm(kCompileSeconds);
    const double start = NowSeconds();
    const std::string cubin = Compile(source, job);
    const double compile_ms = 1000 * (NowSeconds() - start);
    alarm(0);
    HandOver(recorder, index, compile_ms, cubin);
    shared.compiling[slot] = -1;
  }
}

// --- the timer ---

[[noreturn]] void RunTimer(const Recorder& recorder) {
  ConfigTimer timer;
  Shared& shared = *recorder.shared;
  while (shared.timed_jobs < static_cast<int>(recorder.jobs.size())) {
    shared.timer_alive = NowSeconds();
    pollfd ready = {recorder.pipe_read, POLLIN, 0};
    if (poll(&ready, 1, 0) <= 0) {
      // An idle GPU would lower its clocks.
      LaunchSpin(200000);
      cudaDeviceSynchronize();
      continue;
    }
    int index = -1;
    if (read(recorder.pipe_read, &index, sizeof(index)) != sizeof(index)) {
      _exit(4);
    }
    shared.timing = index;
    const std::string file = ReadFile(recorder.CubinPath(index));
    double compile_ms = 0;
    std::memcpy(&compile_ms, file.data(), sizeof(compile_ms));
    const Job& job = recorder.jobs[index];
    AppendLog(recorder.log_path, timer.Time(*job.space, job.config, compile_ms,
                                            file.substr(sizeof(compile_ms))));
    unlink(recorder.CubinPath(index).c_str());
    shared.timing = -1;
    ++shared.timed_jobs;
  }
  _exit(0);
}

// --- the watcher ---

template <typename Run>
pid_t Fork(Run run) {
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) {
    std::perror("fork");
    std::exit(1);
  }
  if (pid == 0) run();
  return pid;
}

void Watch(const Recorder& recorder, double deadline) {
  Shared& shared = *recorder.shared;
  const int jobs = recorder.jobs.size();
  pid_t timer = -1;
  std::vector<pid_t> compilers(recorder.compilers, -1);
  const auto start_timer = [&] {
    shared.timer_alive = NowSeconds() + 20;  // it takes its time to start
    timer = Fork([&] { RunTimer(recorder); });
  };
  const auto start_compiler = [&](int slot) {
    compilers[slot] = Fork([&] { RunCompiler(recorder, slot); });
  };
  for (int slot = 0; slot < recorder.compilers; ++slot) start_compiler(slot);
  start_timer();

  int idle_deaths = 0;  // of timers that had no job, in a row
  double reported = NowSeconds();
  int reported_jobs = 0;
  while (shared.timed_jobs < jobs && NowSeconds() < deadline) {
    usleep(20000);
    if (NowSeconds() - shared.timer_alive > kTimerSeconds) {
      kill(timer, SIGKILL);
      shared.timer_alive = NowSeconds();
    }
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
      std::fprintf(stderr, "process %d ended with status %x\n", pid, status);
      if (pid == timer) {
        const int index = shared.timing.exchange(-1);
        idle_deaths = index >= 0 ? 0 : idle_deaths + 1;
        if (idle_deaths == kMaxIdleDeaths) {
          std::fprintf(stderr, "the timer can't start\n");
          deadline = 0;
          break;
        }
        if (index >= 0) {
          const Job& job = recorder.jobs[index];
          AppendLog(recorder.log_path,
                    FailureLines(*job.space, job.config, kRuntimeFailed, 0));
          ++shared.timed_jobs;
        }
        start_timer();
        continue;
      }
      for (int slot = 0; slot < recorder.compilers; ++slot) {
        if (compilers[slot] != pid) continue;
        const int index = shared.compiling[slot].exchange(-1);
        if (index >= 0) HandOver(recorder, index, 1000 * kCompileSeconds, "");
        start_compiler(slot);
      }
    }
    if (NowSeconds() - reported > 10) {
      const int timed = shared.timed_jobs;
      std::printf("%d of %d timed (%.1f/s), %d compiled\n", timed, jobs,
                  (timed - reported_jobs) / (NowSeconds() - reported),
                  shared.next_job.load());
      std::fflush(stdout);
      reported = NowSeconds();
      reported_jobs = timed;
    }
  }
  for (const pid_t pid : compilers) kill(pid, SIGKILL);
  kill(timer, SIGKILL);
  while (wait(nullptr) > 0) {
  }
  std::printf("%d of %d timed\n", shared.timed_jobs.load(), jobs);
}

const Space& SpaceOf(const std::string& name) {
  for (const Space& space : AllSpaces()) {
    if (space.name == name) return space;
  }
  std::fprintf(stderr, "no space is named '%s'\n", name.c_str());
  std::exit(1);
}

int Record(int argc, char** argv) {
  Recorder recorder;
  recorder.kernel_dir = argv[1];
  recorder.log_path = argv[2];
  const double deadline = NowSeconds() + std::atof(argv[3]);
  recorder.compilers = std::min(std::atoi(argv[4]), kMaxCompilers);

  std::map<std::string, size_t> logged;  // sizes of "space;config"
  for (const LogEntry& entry : ReadLog(recorder.log_path)) {
    ++logged[entry.space + ";" + entry.config];
  }
  // The last line may have no end.
  if (!logged.empty()) AppendLog(recorder.log_path, "\n");
  for (int i = 5; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t colon = argument.find(':');
    const Space& space = SpaceOf(argument.substr(0, colon));
    const std::string source = recorder.SourcePath(space);
    if (ReadFile(source).empty()) {
      std::fprintf(stderr, "%s: no such kernel\n", source.c_str());
      return 1;
    }
    std::vector<Config> configs = ValidConfigs(space);
    // In random order, so that a run that is stopped has a fair sample.
    std::mt19937 random(1);
    for (size_t n = configs.size(); n > 1; --n) {
      std::swap(configs[n - 1], configs[random() % n]);
    }
    if (colon != std::string::npos) {
      configs.resize(std::min<size_t>(configs.size(),
                                      std::stoul(argument.substr(colon + 1))));
    }
    for (Config& config : configs) {
      const auto found = logged.find(space.name + ";" + ConfigKey(config));
      if (found != logged.end() && found->second >= space.sizes.size()) {
        continue;
      }
      recorder.jobs.push_back({&space, std::move(config)});
    }
  }

  char folder[] = "/dev/shm/cubins_XXXXXX";
  if (mkdtemp(folder) == nullptr) {
    std::perror(folder);
    return 1;
  }
  recorder.cubin_dir = folder;
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    return 1;
  }
  recorder.shared = new (memory) Shared();
  for (auto& job : recorder.shared->compiling) job = -1;
  recorder.shared->timing = -1;
  int ends[2];
  if (pipe(ends) != 0) {
    std::perror("pipe");
    return 1;
  }
  recorder.pipe_read = ends[0];
  recorder.pipe_write = ends[1];
  Watch(recorder, deadline);
  for (size_t i = 0; i < recorder.jobs.size(); ++i) {
    unlink(recorder.CubinPath(i).c_str());
  }
  rmdir(folder);
  return 0;
}

}  // namespace
}  // namespace optrail::tuning::recordings

int main(int argc, char** argv) {
  if (argc >= 6) return optrail::tuning::recordings::Record(argc, argv);
  std::fprintf(stderr,
               "usage: %s KERNEL_DIR LOG SECONDS COMPILERS SPACE[:LIMIT]...\n",
               argv[0]);
  return 2;
}
