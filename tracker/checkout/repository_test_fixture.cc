#include "tracker/checkout/repository_test_fixture.h"

#include <sys/stat.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"

namespace optrail::tracker {
namespace {

// %s: where to log.
constexpr char kBazel[] = R"(#!/bin/sh
base=${1#--output_base=}
shift
echo "$1" >> '%s'
case $1 in
build)
  for target; do :; done
  echo "building $target" >&2
  if [ -f broken ]; then echo 'ERROR: broken on purpose' >&2; exit 1; fi
  if [ -f interrupts ]; then kill -INT $PPID; while :; do read x; done; fi
  if [ "$target" != //bench:program ] || [ ! -f bench/program.in ]; then
    echo "ERROR: no such target '$target'" >&2; exit 1
  fi
  mkdir -p "$base/bin/bench"
  cp -f bench/program.in "$base/bin/bench/program"
  chmod 755 "$base/bin/bench/program"
  ;;
info) echo "$base/bin" ;;
esac
)";

// The noise walks through -5..5 per mille, the same way in every test.
constexpr char kProgram[] = R"(#!/bin/sh
for argument; do
  case $argument in --benchmark_out=*) out=${argument#--benchmark_out=} ;; esac
done
count=0
[ -f "$0.count" ] && read count < "$0.count"
echo $((count + 1)) > "$0.count"
time=$((%d * (1000 + count * 37 %% 11 - 5)))
cat > "$out" <<END
{"context": {"date": "2026-11-20T09:08:07+00:00", "num_cpus": 2,
 "mhz_per_cpu": 2000, "caches": []}, "benchmarks": [{"name": "BM_x",
 "run_name": "BM_x", "run_type": "iteration", "repetitions": 1,
 "repetition_index": 0, "threads": 1, "iterations": 100,
 "real_time": $time, "cpu_time": $time, "time_unit": "ns"}]}
END
)";

std::string ProgramText(int time_ns) {
  return absl::StrFormat(kProgram, time_ns);
}

std::string FailingProgramText() {
  return absl::StrReplaceAll(
      ProgramText(1000),
      {{R"("real_time": $time)",
        R"("error_occurred": true, "error_message": "no input",
 "real_time": $time)"}});
}

}  // namespace

FakeRepository::FakeRepository()
    : folder_(std::move(*TemporaryFolder::Create("repository"))) {
  OPTRAIL_CHECK(CreateDirectories(JoinPath(path(), "bench")).ok());
  Git({"init", "--quiet", "--initial-branch=main"});
  Write("bazelw",
        absl::StrFormat(kBazel, JoinPath(folder_->path(), "bazel_log")));
}

std::string FakeRepository::path() const {
  return JoinPath(folder_->path(), "tree");
}

void FakeRepository::Write(const std::string& name,
                           const std::string& text) const {
  const std::string file = JoinPath(path(), name);
  OPTRAIL_CHECK(WriteFileAtomically(file, text).ok()) << file;
  OPTRAIL_CHECK(chmod(file.c_str(), 0755) == 0) << file;
}

std::string FakeRepository::Git(const std::vector<std::string>& args) const {
  std::vector<std::string> argv = {"git",
                                   "-C",
                                   path(),
                                   "-c",
                                   "user.name=Test",
                                   "-c",
                                   "user.email=test@example.org",
                                   "-c",
                                   "commit.gpgsign=false"};
  argv.insert(argv.end(), args.begin(), args.end());
  const auto result = RunCommand(argv);
  OPTRAIL_CHECK(result.ok() && result->exit.ok())
      << args[0] << ": " << (result.ok() ? result->stderr_text : "no git");
  return std::string(absl::StripAsciiWhitespace(result->stdout_text));
}

std::string FakeRepository::CommitAll() {
  Write("number", absl::StrCat(++commits_));
  Git({"add", "--all"});
  Git({"commit", "--quiet", "--message", absl::StrCat("commit ", commits_)});
  // What makes a commit special stays with it.
  for (const char* name : {"broken", "interrupts"}) {
    RemoveFile(JoinPath(path(), name)).IgnoreError();
  }
  return Git({"rev-parse", "HEAD"});
}

std::string FakeRepository::Commit(int time_ns) {
  Write("bench/program.in", ProgramText(time_ns));
  return CommitAll();
}

std::string FakeRepository::CommitThatFails() {
  Write("bench/program.in", FailingProgramText());
  return CommitAll();
}

std::string FakeRepository::CommitThatDoesNotBuild() {
  Write("broken", "");
  return CommitAll();
}

std::string FakeRepository::CommitWithoutTarget() {
  OPTRAIL_CHECK(RemoveFile(JoinPath(path(), "bench/program.in")).ok());
  return CommitAll();
}

std::string FakeRepository::CommitThatInterrupts() {
  Write("interrupts", "");
  return CommitAll();
}

std::string FakeRepository::Program(const std::string& name,
                                    int time_ns) const {
  return WriteProgram(name, ProgramText(time_ns));
}

std::string FakeRepository::ProgramThatFails(const std::string& name) const {
  return WriteProgram(name, FailingProgramText());
}

std::string FakeRepository::WriteProgram(const std::string& name,
                                         const std::string& text) const {
  const std::string file = JoinPath(folder_->path(), name);
  OPTRAIL_CHECK(WriteFileAtomically(file, text).ok());
  OPTRAIL_CHECK(chmod(file.c_str(), 0755) == 0);
  return file;
}

std::vector<std::string> FakeRepository::BazelCommands() const {
  const auto log = ReadFile(JoinPath(folder_->path(), "bazel_log"));
  if (!log.ok()) return {};
  return absl::StrSplit(*log, '\n', absl::SkipEmpty());
}

int FakeRepository::Worktrees() const {
  const std::string list = Git({"worktree", "list"});
  return 1 + static_cast<int>(std::count(list.begin(), list.end(), '\n'));
}

}  // namespace optrail::tracker
