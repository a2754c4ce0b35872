#include "base/process/git.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"

namespace optrail {
namespace {

struct GitResult {
  int code;
  std::string out;  // without the last newline
  std::string err;
};

// Runs git; a code other than 0 is a result. Errors: git is missing or hangs.
absl::StatusOr<GitResult> RunGit(const std::string& dir,
                                 const std::vector<std::string>& args) {
  // --no-optional-locks: `git status` would refresh, and so write, the index.
  std::vector<std::string> argv = {"git", "--no-optional-locks", "-C",
                                   dir.empty() ? "." : dir};
  argv.insert(argv.end(), args.begin(), args.end());
  CommandOptions options;
  options.timeout = absl::Minutes(2);
  // Messages are compared below; and nothing may wait for a password.
  options.environment = {{"LC_ALL", "C"}, {"GIT_TERMINAL_PROMPT", "0"}};
  absl::StatusOr<CommandResult> result = RunCommand(argv, options);
  if (absl::IsNotFound(result.status())) {
    return absl::UnavailableError(
        "git is not installed, or not found in PATH; commits can't be "
        "identified without it");
  }
  if (!result.ok()) return result.status();
  if (result->exit.kind != ExitInfo::Kind::kExited) {
    return absl::UnavailableError(absl::StrCat("git ", args[0], " in ", dir,
                                               " ", result->exit.ToString()));
  }
  GitResult git;
  git.code = result->exit.code;
  git.out =
      std::string(absl::StripTrailingAsciiWhitespace(result->stdout_text));
  git.err = std::string(absl::StripAsciiWhitespace(result->stderr_text));
  return git;
}

// The output of a git command that is expected to succeed.
absl::StatusOr<std::string> GitOutput(const std::string& dir,
                                      const std::vector<std::string>& args) {
  OPTRAIL_ASSIGN_OR_RETURN(GitResult git, RunGit(dir, args));
  if (git.code == 0) return std::move(git.out);
  return absl::FailedPreconditionError(
      absl::StrCat("git ", args[0], " in ", dir, ": ", git.err));
}

// The working tree that holds `dir`.
absl::StatusOr<std::string> TopLevel(const std::string& dir) {
  OPTRAIL_ASSIGN_OR_RETURN(const GitResult git,
                           RunGit(dir, {"rev-parse", "--show-toplevel"}));
  if (git.code == 0) return git.out;
  if (absl::StrContains(git.err, "not a git repository")) {
    return absl::FailedPreconditionError(
        absl::StrCat(dir, " is not in a git repository"));
  }
  // A missing folder, a bare repository, one that belongs to somebody else.
  return absl::FailedPreconditionError(
      absl::StrCat("asking git about ", dir, ": ", git.err));
}

absl::StatusOr<bool> IsShallow(const std::string& dir) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::string answer,
      GitOutput(dir, {"rev-parse", "--is-shallow-repository"}));
  return answer == "true";
}

absl::StatusOr<int64_t> CountFirstParents(const std::string& dir,
                                          const std::string& commit) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::string count,
      GitOutput(dir, {"rev-list", "--count", "--first-parent", commit, "--"}));
  int64_t position;
  if (!absl::SimpleAtoi(count, &position)) {
    return absl::InternalError(
        absl::StrCat("git rev-list --count answered \"", count, "\""));
  }
  return position;
}

}  // namespace

absl::StatusOr<GitFacts> FindGitFacts(const std::string& dir) {
  GitFacts facts;
  OPTRAIL_ASSIGN_OR_RETURN(facts.top_level, TopLevel(dir));
  // Id, time of the commit and subject; a subject holds no newline.
  OPTRAIL_ASSIGN_OR_RETURN(const GitResult head,
                           RunGit(dir, {"log", "-1", "--no-show-signature",
                                        "--format=%H%n%ct%n%s", "HEAD", "--"}));
  if (head.code != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the git repository ", facts.top_level, " has no commit yet"));
  }
  const std::vector<std::string> lines =
      absl::StrSplit(head.out, absl::MaxSplits('\n', 2));
  if (lines.size() < 2 ||
      !absl::SimpleAtoi(lines[1], &facts.commit_time_unix_s)) {
    return absl::InternalError(
        absl::StrCat("git log answered \"", head.out, "\""));
  }
  facts.commit = lines[0];
  if (lines.size() > 2) facts.subject = lines[2];
  OPTRAIL_ASSIGN_OR_RETURN(facts.shallow, IsShallow(dir));
  if (!facts.shallow) {
    OPTRAIL_ASSIGN_OR_RETURN(facts.first_parent_position,
                             CountFirstParents(dir, facts.commit));
  }
  // Fails, quietly, where HEAD is detached.
  OPTRAIL_ASSIGN_OR_RETURN(
      const GitResult branch,
      RunGit(dir, {"symbolic-ref", "--quiet", "--short", "HEAD"}));
  if (branch.code == 0) facts.branch = branch.out;
  // From the top: `dir` may be a clean corner of a dirty tree. Without what we
  // write there ourselves, where no .gitignore names it.
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::string changes,
      GitOutput(facts.top_level, {"status", "--porcelain", "--", ":(top)",
                                  ":(top,exclude,glob)**/.optrail/**"}));
  facts.dirty = !changes.empty();
  return facts;
}

absl::StatusOr<std::string> ResolveCommit(const std::string& dir,
                                          const std::string& name) {
  // A name that begins with "-" is no option.
  OPTRAIL_ASSIGN_OR_RETURN(
      GitResult git,
      RunGit(dir, {"rev-parse", "--verify", "--quiet", "--end-of-options",
                   absl::StrCat(name, "^{commit}")}));
  if (git.code == 0 && !name.empty()) return std::move(git.out);
  OPTRAIL_ASSIGN_OR_RETURN(const std::string top, TopLevel(dir));
  std::string message =
      absl::StrCat("git knows no commit \"", name, "\" in ", top);
  OPTRAIL_ASSIGN_OR_RETURN(const bool shallow, IsShallow(dir));
  if (shallow) {
    absl::StrAppend(&message,
                    ", a shallow clone; `git fetch --unshallow` "
                    "brings the rest of its history");
  }
  return absl::NotFoundError(message);
}

absl::StatusOr<GitCommit> DescribeCommit(const std::string& dir,
                                         const std::string& id) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::string text,
      GitOutput(dir, {"log", "-1", "--no-show-signature", "--format=%ct%n%s",
                      "--end-of-options", id, "--"}));
  const std::pair<std::string, std::string> lines =
      absl::StrSplit(text, absl::MaxSplits('\n', 1));
  GitCommit commit;
  if (!absl::SimpleAtoi(lines.first, &commit.time_unix_s)) {
    return absl::InternalError(absl::StrCat("git log answered \"", text, "\""));
  }
  commit.subject = lines.second;
  return commit;
}

absl::StatusOr<int64_t> FirstParentPosition(const std::string& dir,
                                            const std::string& commit) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string id, ResolveCommit(dir, commit));
  OPTRAIL_ASSIGN_OR_RETURN(const bool shallow, IsShallow(dir));
  if (shallow) {
    return absl::FailedPreconditionError(
        absl::StrCat("the position of commit ", commit, " is not known: ", dir,
                     " is a shallow clone; run `git fetch --unshallow`"));
  }
  return CountFirstParents(dir, id);
}

absl::StatusOr<std::string> MergeBase(const std::string& dir,
                                      const std::string& a,
                                      const std::string& b) {
  OPTRAIL_ASSIGN_OR_RETURN(
      GitResult git, RunGit(dir, {"merge-base", "--end-of-options", a, b}));
  if (git.code == 0) return std::move(git.out);
  // One of the two may be no commit: that is the better message.
  OPTRAIL_RETURN_IF_ERROR(ResolveCommit(dir, a).status());
  OPTRAIL_RETURN_IF_ERROR(ResolveCommit(dir, b).status());
  OPTRAIL_ASSIGN_OR_RETURN(const bool shallow, IsShallow(dir));
  if (shallow) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the merge base of ", a, " and ", b, " is not known: ", dir,
        " is a shallow clone; run `git fetch --unshallow`"));
  }
  return absl::NotFoundError(
      absl::StrCat("commits ", a, " and ", b, " have no common ancestor"));
}

absl::StatusOr<std::string> DiffCommits(const std::string& dir,
                                        const std::string& a,
                                        const std::string& b) {
  return GitOutput(dir, {"diff", "--no-color", "--no-ext-diff", "-U0",
                         "--end-of-options", a, b, "--"});
}

std::string WorkspaceDirectory() {
  const char* workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (workspace != nullptr && *workspace != '\0') return workspace;
  const std::string current = WorkingDirectory();
  for (std::string folder = current;; folder = DirectoryOf(folder)) {
    // A file in a linked work tree.
    if (FileExists(JoinPath(folder, ".git"))) return folder;
    if (folder == "/" || folder == "." || folder.empty()) return current;
  }
}

std::string WorkingDirectory() {
  const char* working = std::getenv("BUILD_WORKING_DIRECTORY");
  if (working != nullptr && *working != '\0') return working;
  char* current = getcwd(nullptr, 0);
  if (current == nullptr) return ".";
  std::string result = current;
  std::free(current);
  return result;
}

}  // namespace optrail
