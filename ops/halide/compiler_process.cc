#include "ops/halide/compiler_process.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"

namespace optrail::halide {
namespace {

// Beyond the compiler's own deadlines.
constexpr absl::Duration kAnswerWithin = absl::Seconds(150);

struct Processes {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Subprocess>> of_program;
};

Processes& AllProcesses() {
  static auto& processes = *new Processes();
  return processes;
}

absl::StatusOr<std::unique_ptr<Subprocess>> Start(const std::string& program) {
  SubprocessOptions options;
  options.stderr_mode = StderrMode::kDiscard;  // its searches say how they go
  return Subprocess::Start({program}, options);
}

}  // namespace

absl::StatusOr<std::string> FindCompiler(absl::string_view runfile) {
  if (runfile.empty()) {
    return absl::UnavailableError(
        "unsupported here: no Halide when Optrail was built (./bazelw installs "
        "it)");
  }
  std::vector<std::string> roots;
  for (const char* name : {"RUNFILES_DIR", "TEST_SRCDIR"}) {
    if (const char* const root = getenv(name); root != nullptr) {
      roots.push_back(root);
    }
  }
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  if (length > 0) {
    const std::string path(self, static_cast<size_t>(length));
    roots.push_back(path + ".runfiles");
    roots.push_back(path.substr(0, path.rfind('/')));
  }
  for (const std::string& root : roots) {
    for (const absl::string_view name :
         {runfile, runfile.substr(runfile.rfind('/') + 1)}) {
      std::string path = JoinPath(root, name);
      if (access(path.c_str(), X_OK) == 0) return path;
    }
  }
  return absl::UnavailableError(
      "unsupported here: compilers of generated kernels are not among this "
      "program's runfiles; build //:optrail of the source tree and run it "
      "where "
      "it lies; packages do not hold them");
}

absl::StatusOr<std::string> AskCompiler(absl::string_view runfile,
                                        const std::string& request) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string program, FindCompiler(runfile));
  Processes& processes = AllProcesses();
  const std::lock_guard<std::mutex> lock(processes.mutex);
  std::unique_ptr<Subprocess>& process = processes.of_program[program];
  // A process that ended since is started anew, once.
  for (int attempt = 0;; ++attempt) {
    const bool fresh = process == nullptr;
    if (fresh) {
      OPTRAIL_ASSIGN_OR_RETURN(process, Start(program));
    }
    const absl::Status asked = process->WriteFrame(request, absl::Seconds(10));
    const absl::StatusOr<std::string> reply =
        asked.ok() ? process->ReadFrame(kAnswerWithin)
                   : absl::StatusOr<std::string>(asked);
    if (!reply.ok()) {
      const ExitInfo exit = process->KillAndWait();
      process.reset();
      if (!fresh && attempt == 0) continue;
      return absl::InternalError(absl::StrCat(
          program, ": ", reply.status().message(), "; it ", exit.ToString()));
    }
    absl::string_view text = *reply;
    if (absl::ConsumePrefix(&text, "ok\n")) return std::string(text);
    absl::ConsumePrefix(&text, "refused\n");
    return absl::InvalidArgumentError(absl::StrCat("Halide: ", text));
  }
}

}  // namespace optrail::halide
