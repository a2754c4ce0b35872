// Our softmax beside a plain loop, interleaved:
//
//   bazel run //ops/peers:softmax_peers_benchmark -- --configs=unroll=4
//
// The loop runs in programs of its own (plain_softmax_main.cc): built with
// -O3 -march=native, and once more with -ffast-math, which lets the compiler
// use libm's vectorised exponential.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "ops/device/cpu/device.h"
#include "ops/peers/interleaved.h"
#include "ops/peers/kernel_candidates.h"

ABSL_FLAG(std::string, shapes,
          "rows=6144,cols=384/f32;rows=4096,cols=1024/f32;"
          "rows=128,cols=30522/f32;rows=1,cols=1000/f32",
          "shapes to compare, separated by semicolons");
ABSL_FLAG(std::string, configs, "",
          "more configs to compare, separated by semicolons; knobs that one "
          "leaves out have their default");
ABSL_FLAG(int, rounds, 31, "interleaved samples of each candidate");

extern char** environ;

namespace optrail::ops {
namespace {

// A plain_softmax program that waits for commands. Killed by the destructor.
class PlainSoftmax {
 public:
  static absl::StatusOr<std::unique_ptr<PlainSoftmax>> Start(
      const std::string& path) {
    std::unique_ptr<PlainSoftmax> plain(new PlainSoftmax(path));
    OPTRAIL_RETURN_IF_ERROR(plain->Spawn());
    return plain;
  }

  ~PlainSoftmax() {
    if (to_ != nullptr) std::fclose(to_);  // end of input: it exits
    if (from_ != nullptr) std::fclose(from_);
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
  }

  // Sends a line and reads a number back.
  absl::StatusOr<double> Ask(const std::string& command) {
    char line[128];
    double answer = 0;
    if (std::fprintf(to_, "%s\n", command.c_str()) < 0 ||
        std::fflush(to_) != 0 ||
        std::fgets(line, sizeof(line), from_) == nullptr ||
        !absl::SimpleAtod(line, &answer)) {
      return absl::InternalError(
          absl::StrCat(path_, " gave no answer to \"", command, "\""));
    }
    return answer;
  }

 private:
  explicit PlainSoftmax(std::string path) : path_(std::move(path)) {}

  absl::Status Spawn() {
    int input[2], output[2];
    if (pipe2(input, O_CLOEXEC) != 0) return absl::InternalError("pipe failed");
    if (pipe2(output, O_CLOEXEC) != 0) {
      close(input[0]);
      close(input[1]);
      return absl::InternalError("pipe failed");
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    char* argv[] = {path_.data(), nullptr};
    const int error =
        posix_spawn(&pid_, path_.c_str(), &actions, nullptr, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(input[0]);
    close(output[1]);
    to_ = fdopen(input[1], "w");
    from_ = fdopen(output[0], "r");
    if (error != 0) {
      pid_ = 0;
      return absl::UnavailableError(absl::StrCat("cannot start ", path_));
    }
    return absl::OkStatus();
  }

  std::string path_;
  pid_t pid_ = 0;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
};

std::string DirectoryOfThisProgram() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  const std::string program(path, length > 0 ? length : 0);
  return program.substr(0, program.rfind('/') + 1);
}

absl::StatusOr<Candidate> MakePlain(const std::string& name,
                                    const std::string& program,
                                    const proto::Shape& shape) {
  OPTRAIL_ASSIGN_OR_RETURN(
      std::shared_ptr<PlainSoftmax> plain,
      PlainSoftmax::Start(absl::StrCat(DirectoryOfThisProgram(), program)));
  OPTRAIL_ASSIGN_OR_RETURN(
      const double sum, plain->Ask(absl::StrCat("shape ", shape.dims(0).value(),
                                                " ", shape.dims(1).value())));
  if (!(sum > 0.999 && sum < 1.001)) {
    return absl::InternalError(absl::StrCat(program, " is wrong: sum ", sum));
  }
  return Candidate{name, [plain](int64_t calls) {
                     const absl::StatusOr<double> elapsed_ns =
                         plain->Ask(absl::StrCat("time ", calls));
                     if (!elapsed_ns.ok()) {
                       std::fprintf(
                           stderr, "%s\n",
                           std::string(elapsed_ns.status().message()).c_str());
                       std::exit(2);
                     }
                     return *elapsed_ns;
                   }};
}

absl::Status CompareShape(const std::string& shape_text, Device& device) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::unique_ptr<KernelCandidates> ours,
      KernelCandidates::Create("softmax", shape_text, device));
  std::vector<Candidate> candidates;
  for (const auto& [name, program] :
       {std::make_pair("plain loop", "plain_softmax"),
        std::make_pair("plain loop, -ffast-math", "plain_softmax_fast_math")}) {
    OPTRAIL_ASSIGN_OR_RETURN(Candidate plain,
                             MakePlain(name, program, ours->shape()));
    candidates.push_back(std::move(plain));
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<Candidate> own,
      ours->Make(absl::StrSplit(absl::GetFlag(FLAGS_configs), ';',
                                absl::SkipEmpty())));
  candidates.insert(candidates.end(), own.begin(), own.end());

  InterleavedOptions options;
  options.rounds = absl::GetFlag(FLAGS_rounds);
  const std::vector<Reading> readings = MeasureInterleaved(candidates, options);
  std::printf("%s\n", ToTable(shape_text, readings,
                              ours->op().MovedBytes(ours->shape()), "GB/s")
                          .c_str());
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status Main() {
  // A loop that died shows as an answer that does not come.
  std::signal(SIGPIPE, SIG_IGN);
  if (absl::GetFlag(FLAGS_rounds) < 1) {
    return absl::InvalidArgumentError("--rounds must be at least 1");
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                           MakeCpuDevice(1));
  std::printf("%s, 1 thread; speed-up over the first line of each shape\n\n",
              device->hardware().id().c_str());
  for (const absl::string_view shape :
       absl::StrSplit(absl::GetFlag(FLAGS_shapes), ';', absl::SkipEmpty())) {
    OPTRAIL_RETURN_IF_ERROR(CompareShape(std::string(shape), *device));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace optrail::ops

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = optrail::ops::Main();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 2;
}
