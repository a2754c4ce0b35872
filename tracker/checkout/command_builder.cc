// A CommitBuilder of two commands, for any build system.

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/process/git.h"
#include "base/status_macros.h"
#include "base/text/quote.h"
#include "tracker/checkout/benchmark_process.h"
#include "tracker/checkout/commit_builder.h"
#include "tracker/checkout/shell_template.h"

namespace optrail::tracker {
namespace {

constexpr int64_t kMostBytes = int64_t{256} << 20;

std::string NameOf(Slot slot) {
  switch (slot) {
    case Slot::kBase:
      return "a";
    case Slot::kCandidate:
      return "b";
    case Slot::kProbe:
      return "c";
  }
  return "";
}

// Regular files of a folder and those below, in the order of their names; paths
// are relative.
absl::StatusOr<std::vector<std::string>> FilesBelow(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(folder, error), end;
       !error && it != end; it.increment(error)) {
    if (it->is_regular_file(error) && !it->is_symlink(error)) {
      files.push_back(it->path().lexically_relative(folder).string());
    }
  }
  if (error) {
    return absl::InternalError(absl::StrCat(folder, ": ", error.message()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

class CommandBuilder : public CommitBuilder {
 public:
  CommandBuilder(const BuildOptions& options, std::unique_ptr<Worktrees> trees,
                 Interruptible& interruptible)
      : CommitBuilder(options, std::move(trees), interruptible) {}

  absl::StatusOr<Built> Build(const std::string& commit, Slot slot) override {
    std::string& there = in_slot_[slot];
    const std::string tree =
        JoinPath(trees_->folder(), absl::StrCat("tree_", NameOf(slot)));
    if (there == commit) return Built{commit, tree};
    // Whatever fails from here on leaves a tree of nobody.
    there.clear();
    OPTRAIL_RETURN_IF_ERROR(trees_->CheckOut(NameOf(slot), commit).status());
    if (!options_.build_command.empty()) {
      OPTRAIL_ASSIGN_OR_RETURN(
          const Interruptible::End end,
          RunBuild({"/bin/sh", "-c", WithOutputAside(options_.build_command)},
                   tree, "it", commit));
      if (!end.exit.ok()) {
        return absl::FailedPreconditionError(
            absl::StrCat("building ", commit.substr(0, 12), ": --build ",
                         end.exit.ToString(),
                         "; the end of its log:", LogTail(end.stderr_tail)));
      }
    }
    OPTRAIL_RETURN_IF_ERROR(CheckHead("--build", commit, tree));
    there = commit;
    return Built{commit, tree};
  }

  absl::StatusOr<ProcessResult> Run(const Built& built) override {
    const std::string folder = JoinPath(trees_->folder(), "results");
    std::error_code error;
    std::filesystem::remove_all(folder, error);  // of the process before
    const std::string out = JoinPath(folder, "out");
    OPTRAIL_RETURN_IF_ERROR(CreateDirectories(out));
    const std::string file = JoinPath(folder, "file");
    const bool writes = absl::StrContains(options_.run_command, "{out}");
    const bool writes_many =
        absl::StrContains(options_.run_command, "{out_dir}");
    const std::string command = FillShellTemplate(
        options_.run_command,
        {{"{out}", file}, {"{out_dir}", out}, {"{filter}", filter_}});
    OPTRAIL_ASSIGN_OR_RETURN(
        const Interruptible::End end,
        interruptible_.Run(
            {"/bin/sh", "-c",
             writes || writes_many
                 ? WithOutputAside(command)
                 : absl::StrCat("{ ", command, "\n} > ", QuoteForShell(file))},
            built.path, options_.deadline));
    OPTRAIL_RETURN_IF_ERROR(CheckHead("--run", built.commit, built.path));
    ProcessResult result = ResultOf(end);
    if (!result.failure.empty()) return result;
    if (!writes_many || writes) {
      OPTRAIL_RETURN_IF_ERROR(AddFile(
          file, writes ? "the file {out}" : "the output of --run", &result));
    }
    if (writes_many) {
      OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                               FilesBelow(out));
      for (const std::string& name : names) {
        OPTRAIL_RETURN_IF_ERROR(AddFile(JoinPath(out, name), name, &result));
      }
    }
    if (result.files.empty()) {
      result.failure = absl::StrCat(
          writes || writes_many ? "wrote nothing to {out}" : "printed nothing",
          " (expected results that optrail import reads)");
      result.outcome = proto::CRASHED;
    }
    return result;
  }

  absl::StatusOr<bool> AreIdentical(const Built& a, const Built& b) override {
    return a.commit == b.commit;
  }

 private:
  // A command that checks out another commit measures that one.
  absl::Status CheckHead(absl::string_view flag, const std::string& commit,
                         const std::string& tree) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::string head,
                             ResolveCommit(tree, "HEAD"));
    if (head == commit) return absl::OkStatus();
    in_slot_.clear();
    return absl::FailedPreconditionError(absl::StrCat(
        flag, " moved HEAD of its work tree from ", commit.substr(0, 12),
        " to ", head.substr(0, 12),
        ": its results are not of the commit that is measured; expected a "
        "command that checks nothing out"));
  }

  // What a build prints goes where its errors go, of which the end is kept.
  static std::string WithOutputAside(const std::string& command) {
    return absl::StrCat("{ ", command, "\n} >&2");
  }

  static absl::Status AddFile(const std::string& path, const std::string& name,
                              ProcessResult* result) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (error || size == 0) return absl::OkStatus();
    if (size > kMostBytes) {
      return absl::FailedPreconditionError(absl::StrCat(
          name, " has ", size, " bytes, expected at most ", kMostBytes));
    }
    OPTRAIL_ASSIGN_OR_RETURN(std::string content, ReadFile(path));
    // A folder below {out_dir} is a program, whose benchmarks bear its name.
    const std::string folder(DirectoryOf(name));
    const bool is_below = name.find('/') != std::string::npos;
    result->files.push_back(
        {name, std::move(content), is_below ? absl::StrCat(folder, "/") : ""});
    return absl::OkStatus();
  }

  std::map<Slot, std::string> in_slot_;  // commit
};

}  // namespace

absl::StatusOr<std::unique_ptr<CommitBuilder>> NewCommandBuilder(
    const BuildOptions& options, Interruptible& interruptible) {
  if (options.run_command.empty()) {
    return absl::InvalidArgumentError(
        "--build without --run: expected a command that prints results or "
        "writes them to {out}");
  }
  if (!options.args.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("arguments after -- are for --target, got '",
                     options.args[0], "': expected them in --run"));
  }
  OPTRAIL_ASSIGN_OR_RETURN(auto trees,
                           Worktrees::Create(options.trees, interruptible));
  return absl::make_unique<CommandBuilder>(options, std::move(trees),
                                           interruptible);
}

}  // namespace optrail::tracker
