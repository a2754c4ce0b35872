// A CommitBuilder of a Bazel target.

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"
#include "re2/re2.h"
#include "tracker/checkout/benchmark_process.h"
#include "tracker/checkout/commit_builder.h"

namespace optrail::tracker {
namespace {

// "//path:name" or "//path", of the main repository, without wildcards.
absl::StatusOr<std::pair<std::string, std::string>> ParseTarget(
    const std::string& target) {
  static const RE2* const kLabel =
      new RE2("//([A-Za-z0-9_./+=~@-]*)(?::([A-Za-z0-9_./+=~@-]+))?");
  if (target.empty()) {
    return absl::InvalidArgumentError(
        "what to measure is missing; next: --run='./bench "
        "--benchmark_format=json' (and --build), or with Bazel "
        "--target=//path:my_benchmark");
  }
  std::string package, name;
  if (!RE2::FullMatch(target, *kLabel, &package, &name) ||
      absl::StrContains(target, "...") || (package.empty() && name.empty()) ||
      name == "all") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--target='", target,
        "': expected the label of one program, such as //path:my_benchmark; "
        "other build systems have --build and --run"));
  }
  if (name.empty()) name = std::string(FileNameOf(package));
  return std::make_pair(package, name);
}

class TargetBuilder : public CommitBuilder {
 public:
  TargetBuilder(const BuildOptions& options, std::unique_ptr<Worktrees> trees,
                Interruptible& interruptible)
      : CommitBuilder(options, std::move(trees), interruptible),
        output_base_flag_(absl::StrCat(
            "--output_base=", JoinPath(trees_->folder(), "output_base"))) {}

  ~TargetBuilder() override {
    if (builds_ == 0) return;
    // Ends the server, which otherwise holds files of the folder for hours.
    CommandOptions options;
    options.working_directory = tree_;
    options.timeout = absl::Minutes(1);
    RunCommand({Bazel(), output_base_flag_, "shutdown"}, options)
        .status()
        .IgnoreError();
  }

  absl::StatusOr<Built> Build(const std::string& commit, Slot) override {
    const auto found = built_.find(commit);
    if (found != built_.end()) return Built{commit, found->second};
    const std::string short_id = commit.substr(0, 12);
    OPTRAIL_ASSIGN_OR_RETURN(tree_, trees_->CheckOut("a", commit));
    const std::string bazel = Bazel();
    OPTRAIL_ASSIGN_OR_RETURN(
        const Interruptible::End end,
        RunBuild(
            {bazel, output_base_flag_, "build", "-c", "opt", "--color=no",
             "--curses=no", "--show_progress_rate_limit=10", options_.target},
            tree_, options_.target, commit));
    if (!end.exit.ok()) {
      if (absl::StrContains(end.stderr_tail, "no such target") ||
          absl::StrContains(end.stderr_tail, "no such package")) {
        return absl::NotFoundError(
            absl::StrCat("commit ", short_id, " has no target ",
                         options_.target, LogTail(end.stderr_tail)));
      }
      return absl::FailedPreconditionError(
          absl::StrCat("building ", options_.target, " at ", short_id,
                       ": bazel ", end.exit.ToString(),
                       "; the end of its log:", LogTail(end.stderr_tail)));
    }
    OPTRAIL_ASSIGN_OR_RETURN(const std::string file, BuiltFile(bazel));
    const std::string binary = JoinPath(trees_->folder(), commit);
    std::error_code error;
    std::filesystem::copy_file(
        file, binary, std::filesystem::copy_options::overwrite_existing, error);
    if (error) {
      return absl::FailedPreconditionError(
          absl::StrCat(options_.target, " at ", short_id,
                       " is no program: ", file, ": ", error.message()));
    }
    built_[commit] = binary;
    return Built{commit, binary};
  }

  absl::StatusOr<ProcessResult> Run(const Built& built) override {
    BenchmarkProgram program;
    program.path = built.path;
    program.args = options_.args;
    program.working_directory = options_.trees.repository;
    program.deadline = options_.deadline;
    return RunBenchmarkProcess(program, trees_->folder(), interruptible_);
  }

  absl::StatusOr<bool> AreIdentical(const Built& a, const Built& b) override {
    return HoldSameBytes(a.path, b.path);
  }

 private:
  std::string Bazel() const {
    const std::string wrapper = JoinPath(tree_, "bazelw");
    return FileExists(wrapper) ? wrapper : "bazel";
  }

  absl::StatusOr<std::string> BuiltFile(const std::string& bazel) {
    CommandOptions options;
    options.working_directory = tree_;
    options.timeout = absl::Minutes(10);
    OPTRAIL_ASSIGN_OR_RETURN(
        const CommandResult info,
        RunCommand({bazel, output_base_flag_, "info", "-c", "opt", "bazel-bin"},
                   options));
    if (!info.exit.ok()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "bazel info ", info.exit.ToString(), LogTail(info.stderr_text)));
    }
    OPTRAIL_ASSIGN_OR_RETURN(const auto target, ParseTarget(options_.target));
    return JoinPath(absl::StripAsciiWhitespace(info.stdout_text), target.first,
                    target.second);
  }

  const std::string output_base_flag_;
  std::string tree_;
  std::map<std::string, std::string> built_;  // commit -> binary
};

}  // namespace

absl::StatusOr<std::unique_ptr<CommitBuilder>> NewTargetBuilder(
    const BuildOptions& options, Interruptible& interruptible) {
  OPTRAIL_RETURN_IF_ERROR(ParseTarget(options.target).status());
  OPTRAIL_ASSIGN_OR_RETURN(auto trees,
                           Worktrees::Create(options.trees, interruptible));
  return absl::make_unique<TargetBuilder>(options, std::move(trees),
                                          interruptible);
}

}  // namespace optrail::tracker
