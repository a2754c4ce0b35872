#include "tracker/ab/worktree.h"

#include <filesystem>
#include <iostream>
#include <system_error>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/git.h"
#include "base/status_macros.h"
#include "base/subprocess.h"
#include "base/table.h"
#include "base/units.h"
#include "re2/re2.h"

namespace optrail::tracker {
namespace {

constexpr absl::Duration kGitDeadline = absl::Minutes(10);

// The end of a build log: lines that a terminal can show.
std::string LogTail(absl::string_view log) {
  constexpr size_t kLines = 30;
  std::vector<absl::string_view> lines =
      absl::StrSplit(log, absl::ByAnyChar("\r\n"), absl::SkipWhitespace());
  if (lines.size() > kLines) {
    lines.erase(lines.begin(), lines.end() - kLines);
  }
  std::string tail;
  for (const absl::string_view line : lines) {
    absl::StrAppend(&tail, "\n  ", EscapeForTerminal(line));
  }
  return tail;
}

absl::StatusOr<std::string> RunGit(const std::string& dir,
                                   std::vector<std::string> args) {
  const std::string name = absl::StrCat("git ", args[0]);
  std::vector<std::string> argv = {"git", "-C", dir};
  argv.insert(argv.end(), args.begin(), args.end());
  CommandOptions options;
  options.timeout = kGitDeadline;
  options.environment = {{"LC_ALL", "C"}, {"GIT_TERMINAL_PROMPT", "0"}};
  OPTRAIL_ASSIGN_OR_RETURN(const CommandResult result,
                           RunCommand(argv, options));
  if (result.exit.ok()) return result.stdout_text;
  return absl::FailedPreconditionError(absl::StrCat(
      name, " ", result.exit.ToString(), LogTail(result.stderr_text)));
}

// "//path:name" or "//path", of the main repository, without wildcards.
absl::StatusOr<std::pair<std::string, std::string>> ParseTarget(
    const std::string& target) {
  static const RE2* const kLabel =
      new RE2("//([A-Za-z0-9_./+=~@-]*)(?::([A-Za-z0-9_./+=~@-]+))?");
  std::string package, name;
  if (!RE2::FullMatch(target, *kLabel, &package, &name) ||
      absl::StrContains(target, "...") || (package.empty() && name.empty()) ||
      name == "all") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--target='", target,
        "': expected the label of one program, such as //path:my_benchmark"));
  }
  if (name.empty()) name = std::string(FileNameOf(package));
  return std::make_pair(package, name);
}

}  // namespace

absl::StatusOr<bool> AreIdentical(const std::string& path_a,
                                  const std::string& path_b) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string a, ReadFile(path_a));
  OPTRAIL_ASSIGN_OR_RETURN(const std::string b, ReadFile(path_b));
  return a == b;
}

absl::StatusOr<std::unique_ptr<CommitBuilder>> CommitBuilder::Create(
    const BuildOptions& options, Interruptible& interruptible) {
  OPTRAIL_RETURN_IF_ERROR(ParseTarget(options.target).status());
  OPTRAIL_ASSIGN_OR_RETURN(const GitFacts facts,
                           FindGitFacts(options.repository));
  OPTRAIL_ASSIGN_OR_RETURN(auto folder, TemporaryFolder::Create("commits"));
  return absl::WrapUnique(new CommitBuilder(options, facts.top_level,
                                            std::move(folder), interruptible));
}

CommitBuilder::CommitBuilder(BuildOptions options, std::string top_level,
                             std::unique_ptr<TemporaryFolder> folder,
                             Interruptible& interruptible)
    : options_(std::move(options)),
      top_level_(std::move(top_level)),
      folder_(std::move(folder)),
      interruptible_(interruptible),
      tree_(JoinPath(folder_->path(), "tree")),
      output_base_flag_(absl::StrCat(
          "--output_base=", JoinPath(folder_->path(), "output_base"))) {}

CommitBuilder::~CommitBuilder() {
  if (!has_tree_) return;
  if (builds_ > 0) {
    // Ends the server, which otherwise holds files of the folder for hours.
    CommandOptions options;
    options.working_directory = tree_;
    options.timeout = absl::Minutes(1);
    RunCommand({Bazel(), output_base_flag_, "shutdown"}, options)
        .status()
        .IgnoreError();
  }
  const auto removed =
      RunGit(top_level_, {"worktree", "remove", "--force", "--force", tree_});
  if (!removed.ok()) {
    // The folder goes anyway; then git forgets it by itself.
    std::error_code ignored;
    std::filesystem::remove_all(tree_, ignored);
    RunGit(top_level_, {"worktree", "prune"}).status().IgnoreError();
  }
}

absl::StatusOr<std::string> CommitBuilder::Resolve(
    const std::string& name) const {
  return ResolveCommit(top_level_, name);
}

absl::StatusOr<std::vector<std::string>> CommitBuilder::FirstParentLine(
    const std::string& good, const std::string& bad) const {
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::string text,
      RunGit(top_level_, {"rev-list", "--first-parent", "--reverse", bad,
                          absl::StrCat("^", good), "--"}));
  std::vector<std::string> line =
      absl::StrSplit(text, '\n', absl::SkipWhitespace());
  const absl::StatusOr<std::string> parent =
      line.empty() ? good : ResolveCommit(top_level_, line[0] + "^1");
  if (line.empty() || !parent.ok() || *parent != good) {
    return absl::FailedPreconditionError(absl::StrCat(
        "commit ", good.substr(0, 12),
        " is not on the first-parent line that leads to ", bad.substr(0, 12),
        ": expected an earlier commit of the same branch"));
  }
  line.insert(line.begin(), good);
  return line;
}

std::string CommitBuilder::Subject(const std::string& commit) const {
  const absl::StatusOr<std::string> subject =
      RunGit(top_level_,
             {"log", "-1", "--no-show-signature", "--format=%s", commit, "--"});
  return subject.ok() ? std::string(absl::StripAsciiWhitespace(*subject)) : "";
}

std::string CommitBuilder::Bazel() const {
  const std::string wrapper = JoinPath(tree_, "bazelw");
  return FileExists(wrapper) ? wrapper : "bazel";
}

absl::Status CommitBuilder::CheckOut(const std::string& commit) {
  OPTRAIL_RETURN_IF_ERROR(interruptible_.Check());
  if (has_tree_) {
    return RunGit(tree_, {"checkout", "--quiet", "--force", "--detach", commit})
        .status();
  }
  // From here on there may be something to remove, whatever git says.
  has_tree_ = true;
  return RunGit(top_level_, {"worktree", "add", "--quiet", "--force",
                             "--detach", tree_, commit})
      .status();
}

absl::StatusOr<std::string> CommitBuilder::BuiltFile(const std::string& bazel) {
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

absl::StatusOr<std::string> CommitBuilder::Build(const std::string& commit) {
  const auto found = built_.find(commit);
  if (found != built_.end()) return found->second;
  const std::string short_id = commit.substr(0, 12);
  OPTRAIL_RETURN_IF_ERROR(CheckOut(commit));
  const std::string bazel = Bazel();
  if (!options_.quiet) {
    std::cerr << "building " << options_.target << " at " << short_id
              << " ...\n";
  }
  const int64_t start_ns = Clock::Real()->NowNs();
  ++builds_;
  OPTRAIL_ASSIGN_OR_RETURN(
      const Interruptible::End end,
      interruptible_.Run(
          {bazel, output_base_flag_, "build", "-c", "opt", "--color=no",
           "--curses=no", "--show_progress_rate_limit=10", options_.target},
          tree_, options_.deadline));
  if (!end.exit.ok()) {
    if (absl::StrContains(end.stderr_tail, "no such target") ||
        absl::StrContains(end.stderr_tail, "no such package")) {
      return absl::NotFoundError(
          absl::StrCat("commit ", short_id, " has no target ", options_.target,
                       LogTail(end.stderr_tail)));
    }
    return absl::FailedPreconditionError(
        absl::StrCat("building ", options_.target, " at ", short_id, ": bazel ",
                     end.exit.ToString(),
                     "; the end of its log:", LogTail(end.stderr_tail)));
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::string file, BuiltFile(bazel));
  const std::string binary = JoinPath(folder_->path(), commit);
  std::error_code error;
  std::filesystem::copy_file(file, binary, error);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrCat(options_.target, " at ", short_id,
                     " is no program: ", file, ": ", error.message()));
  }
  if (!options_.quiet) {
    std::cerr << "built " << options_.target << " at " << short_id << " in "
              << FormatDurationNs(
                     static_cast<double>(Clock::Real()->NowNs() - start_ns))
              << "\n";
  }
  built_[commit] = binary;
  return binary;
}

}  // namespace optrail::tracker
