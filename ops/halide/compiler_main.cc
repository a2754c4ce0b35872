// The compiler of one operator's algorithm: a program of its own, so that
// nothing else links Halide and LLVM. It reads requests (compile.h) as frames
// and answers each with "ok\n" and the result, or "refused\n" and why not.
//
// Every request is carried out by a fork of this process, which has done
// nothing but load libraries: what one leaves behind cannot change what the
// next makes, and one that crashes, hangs or eats memory is an answer like
// another.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/process/subprocess.h"
#include "ops/halide/compile.h"
#include "ops/halide/runtime_object.h"

namespace optrail::halide {
namespace {

// A limit of processor time: a busy machine makes nothing harder to compile. A
// compilation that sleeps or waits for a core is given longer.
constexpr absl::Duration kDeadline = absl::Seconds(5);
constexpr int kPatience = 4;
constexpr rlim_t kMaxDataBytes = rlim_t{1} << 30;
// Autoschedulers search; what does not end is searched again with less in it.
// These are settings of Adams2019: of a convolution it ends within minutes, 2 s
// and 1 s. The others end anyway.
constexpr absl::Duration kAutoschedulerDeadline = absl::Seconds(10);
constexpr rlim_t kAutoschedulerMaxDataBytes = rlim_t{4} << 30;
constexpr const char* kSmallerSearches[] = {"HL_NO_SUBTILING", "HL_BEAM_SIZE"};

// A file without a name, so that nothing stays behind whatever happens. Others
// open it by its path.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : fd_(memfd_create(name, 0)) {}
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return absl::StrCat("/proc/self/fd/", fd_); }
  bool Write(const char* data, size_t size) {
    while (size > 0) {
      const ssize_t n = write(fd_, data, size);
      if (n <= 0) return false;
      data += n;
      size -= static_cast<size_t>(n);
    }
    return true;
  }
  std::string Read() const {
    std::string contents(static_cast<size_t>(lseek(fd_, 0, SEEK_END)), '\0');
    const ssize_t n = pread(fd_, contents.data(), contents.size(), 0);
    contents.resize(n < 0 ? 0 : static_cast<size_t>(n));
    return contents;
  }
  void Clear() {
    if (ftruncate(fd_, 0) == 0) lseek(fd_, 0, SEEK_SET);
  }

 private:
  const int fd_;
};

std::string Refused(absl::string_view why) {
  return absl::StrCat("refused\n", why);
}

class Compiler {
 public:
  Compiler() : object_("object"), library_("library"), runtime_("runtime") {
    (void)runtime_.Write(kRuntimeObject, kRuntimeObjectSize);
  }

  std::string Answer(const std::string& request) {
    bool in_time = true;
    std::string answer = Attempt(request, nullptr, &in_time);
    if (!IsSearch(request)) return answer;
    for (const char* const smaller : kSmallerSearches) {
      if (!in_time) answer = Attempt(request, smaller, &in_time);
    }
    return answer;
  }

 private:
  // With `setting` of the environment as 1, if there is one.
  std::string Attempt(const std::string& request, const char* setting,
                      bool* in_time) {
    object_.Clear();
    library_.Clear();
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC) != 0) {
      return Refused(absl::StrCat("pipe: ", std::strerror(errno)));
    }
    const pid_t self = getpid();
    const pid_t child = fork();
    if (child < 0) {
      close(pipe_fds[0]);
      close(pipe_fds[1]);
      return Refused(absl::StrCat("fork: ", std::strerror(errno)));
    }
    if (child == 0) {
      close(pipe_fds[0]);
      // DieWithParent() is for processes that a Subprocess started.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != self) _exit(1);
      if (setting != nullptr) setenv(setting, "1", 1);
      InChild(request, pipe_fds[1]);
    }
    setpgid(child, child);
    close(pipe_fds[1]);
    const std::string answer = FromChild(request, child, pipe_fds[0], in_time);
    close(pipe_fds[0]);
    return answer;
  }

  static bool IsSearch(const std::string& request) {
    return absl::StrContains(request, "\nautoscheduler ");
  }
  static absl::Duration DeadlineOf(const std::string& request) {
    return IsSearch(request) ? kAutoschedulerDeadline : kDeadline;
  }
  static rlim_t MaxDataBytesOf(const std::string& request) {
    return IsSearch(request) ? kAutoschedulerMaxDataBytes : kMaxDataBytes;
  }

  [[noreturn]] void InChild(const std::string& request, int fd) {
    setpgid(0, 0);
    const rlim_t bytes = MaxDataBytesOf(request);
    const rlimit limit = {bytes, bytes};
    setrlimit(RLIMIT_DATA, &limit);
    const auto seconds =
        static_cast<rlim_t>(absl::ToInt64Seconds(DeadlineOf(request)));
    const rlimit cpu = {seconds, seconds + 1};
    setrlimit(RLIMIT_CPU, &cpu);
    const rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    Reply reply =
        CarryOut(absl::StrCat(request, "object ", object_.path(), "\n"));
    if (reply.ok && absl::StartsWith(request, "kind compile")) reply = Link();
    const std::string text =
        absl::StrCat(reply.ok ? "ok\n" : "refused\n", reply.text);
    size_t written = 0;
    while (written < text.size()) {
      const ssize_t n = write(fd, text.data() + written, text.size() - written);
      if (n <= 0) break;
      written += static_cast<size_t>(n);
    }
    // No destructors: LLVM's are slow, and nobody needs them.
    _exit(0);
  }

  Reply Link() const {
    const pid_t linker = fork();
    if (linker == 0) {
      const std::string library = library_.path(), object = object_.path(),
                        runtime = runtime_.path();
      execlp("ld", "ld", "-shared", "-s", "--gc-sections", "-o",
             library.c_str(), object.c_str(), runtime.c_str(), nullptr);
      _exit(127);
    }
    int status = 0;
    if (linker < 0 || waitpid(linker, &status, 0) < 0) {
      return {false, "cannot start ld"};
    }
    if (status != 0) return {false, "ld failed: is binutils installed?"};
    return {true, ""};
  }

  std::string FromChild(const std::string& request, pid_t child, int fd,
                        bool* in_time) {
    const absl::Duration limit = DeadlineOf(request);
    const absl::Time deadline = absl::Now() + kPatience * limit;
    std::string text;
    *in_time = true;
    while (true) {
      const absl::Duration left = deadline - absl::Now();
      pollfd waiting = {fd, POLLIN, 0};
      const int ready = poll(&waiting, 1,
                             static_cast<int>(absl::ToInt64Milliseconds(
                                 std::max(left, absl::ZeroDuration()))));
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) {
        *in_time = false;
        break;
      }
      char buffer[4096];
      const ssize_t n = read(fd, buffer, sizeof buffer);
      if (n <= 0) break;
      text.append(buffer, static_cast<size_t>(n));
    }
    if (!*in_time) kill(-child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    *in_time &= !WIFSIGNALED(status) || WTERMSIG(status) != SIGXCPU;
    if (!*in_time) {
      return Refused(absl::StrCat("compiling took longer than ",
                                  absl::FormatDuration(limit)));
    }
    if (WIFSIGNALED(status)) {
      return Refused(
          absl::StrCat("compiling ended by signal ", WTERMSIG(status), " (",
                       strsignal(WTERMSIG(status)), "), with at most ",
                       MaxDataBytesOf(request) >> 20, " MiB of memory"));
    }
    if (text.empty()) return Refused("the compiler said nothing");
    if (absl::StartsWith(text, "ok\n")) {
      if (absl::StartsWith(request, "kind compile")) text += library_.Read();
      if (absl::StartsWith(request, "kind object")) text += object_.Read();
    }
    return text;
  }

  MemoryFile object_, library_, runtime_;
};

int Main() {
  DieWithParent();
  auto channel = FrameChannel::TakeStandardStreams();
  if (!channel.ok()) {
    std::cerr << channel.status().message() << "\n";
    return 2;
  }
  Compiler compiler;
  while (true) {
    const auto request = (*channel)->Read();
    if (!request.ok()) return absl::IsOutOfRange(request.status()) ? 0 : 2;
    if (!(*channel)->Write(compiler.Answer(*request)).ok()) return 2;
  }
}

}  // namespace
}  // namespace optrail::halide

int main() { return optrail::halide::Main(); }
