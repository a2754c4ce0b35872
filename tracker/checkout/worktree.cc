#include "tracker/checkout/worktree.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file/file.h"
#include "base/process/git.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"

namespace optrail::tracker {
namespace {

constexpr absl::Duration kGitDeadline = absl::Minutes(10);
constexpr char kTemporaryName[] = "commits";

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

// The commits that `git rev-list --first-parent` prints for `args`.
absl::StatusOr<std::vector<std::string>> RevList(
    const std::string& dir, const std::vector<std::string>& args) {
  std::vector<std::string> command = {"rev-list", "--first-parent"};
  command.insert(command.end(), args.begin(), args.end());
  command.push_back("--");
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text, RunGit(dir, command));
  return std::vector<std::string>(
      absl::StrSplit(text, '\n', absl::SkipWhitespace()));
}

// Takes the folder for this process until it closes the descriptor or ends.
// `flags` may be O_CREAT.
absl::StatusOr<int> Lock(const std::string& folder, int flags) {
  const std::string path = JoinPath(folder, "lock");
  const int descriptor = open(path.c_str(), flags | O_RDWR | O_CLOEXEC, 0644);
  if (descriptor < 0) return FileError("opening", path, errno);
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  close(descriptor);
  return absl::UnavailableError(
      absl::StrCat(folder, " is in use by another process"));
}

// Folders and git's entries of a tree go; both may be gone already.
void RemoveTree(const std::string& repository, const std::string& path) {
  const auto removed =
      RunGit(repository, {"worktree", "remove", "--force", "--force", path});
  if (removed.ok()) return;
  // The folder goes anyway; then git forgets it by itself.
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
  RunGit(repository, {"worktree", "prune"}).status().IgnoreError();
}

// Removes temporary folders with their trees whose process was killed: nobody
// holds their lock.
void RemoveAbandonedTrees(const std::string& repository) {
  const auto list = RunGit(repository, {"worktree", "list", "--porcelain"});
  if (!list.ok()) return;
  std::map<std::string, std::vector<std::string>> trees;  // by folder
  for (absl::string_view line : absl::StrSplit(*list, '\n')) {
    if (!absl::ConsumePrefix(&line, "worktree ")) continue;
    const std::filesystem::path folder =
        std::filesystem::path(std::string(line)).parent_path();
    if (absl::StartsWith(folder.filename().string(),
                         absl::StrCat("optrail-", kTemporaryName, "-"))) {
      trees[folder.string()].emplace_back(line);
    }
  }
  for (const auto& [folder, paths] : trees) {
    int lock = -1;
    if (FileExists(folder)) {
      const absl::StatusOr<int> taken = Lock(folder, 0);
      if (!taken.ok()) continue;
      lock = *taken;
    }
    for (const std::string& path : paths) RemoveTree(repository, path);
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    if (lock >= 0) close(lock);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Worktrees>> Worktrees::Create(
    const WorktreeOptions& options, Interruptible& interruptible) {
  OPTRAIL_ASSIGN_OR_RETURN(const GitFacts facts,
                           FindGitFacts(options.repository));
  std::unique_ptr<TemporaryFolder> temporary;
  std::string folder = options.folder;
  if (folder.empty()) {
    RemoveAbandonedTrees(facts.top_level);
    OPTRAIL_ASSIGN_OR_RETURN(temporary,
                             TemporaryFolder::Create(kTemporaryName));
    folder = temporary->path();
  } else {
    OPTRAIL_RETURN_IF_ERROR(CreateDirectories(folder));
  }
  OPTRAIL_ASSIGN_OR_RETURN(const int lock, Lock(folder, O_CREAT));
  return absl::WrapUnique(new Worktrees(
      facts.top_level, folder, std::move(temporary), lock, interruptible));
}

Worktrees::Worktrees(std::string top_level, std::string folder,
                     std::unique_ptr<TemporaryFolder> temporary, int lock,
                     Interruptible& interruptible)
    : top_level_(std::move(top_level)),
      folder_(std::move(folder)),
      temporary_(std::move(temporary)),
      lock_(lock),
      interruptible_(interruptible) {}

Worktrees::~Worktrees() {
  if (temporary_ != nullptr) {
    for (const std::string& path : trees_) RemoveTree(top_level_, path);
  }
  close(lock_);
}

absl::StatusOr<std::string> Worktrees::Resolve(const std::string& name) const {
  return ResolveCommit(top_level_, name);
}

absl::StatusOr<std::vector<std::string>> Worktrees::FirstParentLine(
    const std::string& good, const std::string& bad) const {
  OPTRAIL_ASSIGN_OR_RETURN(
      std::vector<std::string> line,
      RevList(top_level_, {"--reverse", bad, absl::StrCat("^", good)}));
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

absl::StatusOr<std::vector<std::string>> Worktrees::Range(
    const std::string& range) const {
  const size_t dots = range.find("..");
  if (dots == std::string::npos) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::string last, Resolve(range));
    return RevList(top_level_, {last});
  }
  const std::string end = range.substr(dots + 2);
  OPTRAIL_ASSIGN_OR_RETURN(const std::string first,
                           Resolve(range.substr(0, dots)));
  OPTRAIL_ASSIGN_OR_RETURN(const std::string last,
                           Resolve(end.empty() ? "HEAD" : end));
  return RevList(top_level_, {last, absl::StrCat("^", first)});
}

std::string Worktrees::Subject(const std::string& commit) const {
  const absl::StatusOr<std::string> subject =
      RunGit(top_level_,
             {"log", "-1", "--no-show-signature", "--format=%s", commit, "--"});
  return subject.ok() ? std::string(absl::StripAsciiWhitespace(*subject)) : "";
}

absl::Status Worktrees::Add(const std::string& path,
                            const std::string& commit) const {
  return RunGit(top_level_, {"worktree", "add", "--quiet", "--force",
                             "--detach", path, commit})
      .status();
}

absl::StatusOr<std::string> Worktrees::CheckOut(const std::string& name,
                                                const std::string& commit) {
  OPTRAIL_RETURN_IF_ERROR(interruptible_.Check());
  const std::string path = JoinPath(folder_, absl::StrCat("tree_", name));
  // From here on there may be something to remove, whatever git says.
  const bool is_new = trees_.insert(path).second;
  if (!is_new || FileExists(path)) {
    const absl::Status moved =
        RunGit(path, {"checkout", "--quiet", "--force", "--detach", commit})
            .status();
    if (moved.ok() || temporary_ != nullptr) {
      OPTRAIL_RETURN_IF_ERROR(moved);
      return path;
    }
    // What a killed process left behind may be half a tree.
    RemoveTree(top_level_, path);
  }
  OPTRAIL_RETURN_IF_ERROR(Add(path, commit));
  return path;
}

}  // namespace optrail::tracker
