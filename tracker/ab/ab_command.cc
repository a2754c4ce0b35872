#include "tracker/ab/ab_command.h"

#include <iostream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/process/git.h"
#include "base/status_macros.h"
#include "tracker/ab/sides.h"
#include "tracker/checkout/benchmark_process.h"
#include "tracker/checkout/interruptible.h"
#include "tracker/checkout/temporary_folder.h"
#include "tracker/series/commit.h"
#include "tracker/series/work_tree.h"

namespace optrail::tracker {
namespace {

// An interrupted command has cleaned up once this returns.
absl::StatusOr<int> Cleanly(const absl::StatusOr<int>& code) {
  if (absl::IsCancelled(code.status())) {
    std::cerr << code.status().message() << "\n";
  }
  return code;
}

absl::StatusOr<proto::Commit> CommitOf(const AbCommand& options,
                                       const std::string& id) {
  std::string unused;
  return CommitNamed(options.common.workspace, id, &unused);
}

// The branches from which a baseline is taken, in the order of preference.
std::vector<std::string> BaseBranches(const AbCommand& options) {
  if (!options.base_branch.empty()) return {options.base_branch};
  return {"origin/main", "main", "origin/master", "master"};
}

// Returns the commit of the baseline with the branch that it was taken from,
// not the one that is checked out: the window of a later gate finds it there.
absl::StatusOr<proto::Commit> BaselineCommit(const AbCommand& options,
                                             const std::string& id) {
  OPTRAIL_ASSIGN_OR_RETURN(proto::Commit commit, CommitOf(options, id));
  for (const std::string& branch : BaseBranches(options)) {
    if (!IsOnFirstParentLine(options.common.workspace, commit, branch)) {
      continue;
    }
    commit.set_branch(std::string(absl::StripPrefix(branch, "origin/")));
    break;
  }
  return commit;
}

// Builds and compares commits that are resolved; `name_a` says what A is.
absl::StatusOr<int> CompareBuilt(const AbCommand& options, const std::string& a,
                                 const std::string& name_a,
                                 const std::string& b, CommitBuilder& builder,
                                 std::ostream& out) {
  Sides sides;
  sides.a.name = name_a;
  sides.b.name = options.b;
  OPTRAIL_ASSIGN_OR_RETURN(const Built built_a, builder.Build(a, Slot::kBase));
  OPTRAIL_ASSIGN_OR_RETURN(const Built built_b,
                           builder.Build(b, Slot::kCandidate));
  OPTRAIL_ASSIGN_OR_RETURN(sides.a.commit, BaselineCommit(options, a));
  OPTRAIL_ASSIGN_OR_RETURN(sides.b.commit, CommitOf(options, b));
  OPTRAIL_ASSIGN_OR_RETURN(sides.identical,
                           builder.AreIdentical(built_a, built_b));
  sides.a.run = [&] { return builder.Run(built_a); };
  sides.b.run = [&] { return builder.Run(built_b); };
  sides.narrow = [&](std::string filter) { builder.Narrow(std::move(filter)); };
  if (options.code_difference != nullptr) {
    sides.code_difference = [&] {
      return options.code_difference(
          built_a.path, built_b.path,
          DiffCommits(options.common.workspace, a, b).value_or(""));
    };
  }
  return CompareSides(options, sides, out);
}

BuildOptions BuildOptionsOf(const AbCommand& options) {
  BuildOptions build = options.build;
  build.trees.repository = options.common.workspace;
  build.quiet = options.quiet;
  return build;
}

// What B is to be gated against, if nobody says: {name, id}.
absl::StatusOr<std::pair<std::string, std::string>> BaseOf(
    const AbCommand& options, const std::string& head) {
  for (const std::string& branch : BaseBranches(options)) {
    const auto tip = ResolveCommit(options.common.workspace, branch);
    if (!tip.ok()) continue;
    OPTRAIL_ASSIGN_OR_RETURN(const std::string base,
                             MergeBase(options.common.workspace, *tip, head));
    if (base != head) return std::make_pair("merge-base:" + branch, base);
    // A commit of that branch itself: what it changed is its own diff.
    const auto parent = ResolveCommit(options.common.workspace, head + "^1");
    if (!parent.ok()) {
      return absl::FailedPreconditionError(absl::StrCat(
          options.b, " is the first commit: there is nothing to gate it by"));
    }
    return std::make_pair(
        absl::StrCat(options.b, "^, as ", options.b, " is part of ", branch),
        *parent);
  }
  return absl::NotFoundError(absl::StrCat(
      "--baseline: there is no branch ",
      options.base_branch.empty() ? "main or master" : options.base_branch,
      "; expected merge-base:BRANCH or a commit"));
}

}  // namespace

absl::StatusOr<int> RunCompareBinaries(const AbCommand& options,
                                       std::ostream& out) {
  Interruptible interruptible;
  OPTRAIL_RETURN_IF_ERROR(CheckExecutable(options.a));
  OPTRAIL_RETURN_IF_ERROR(CheckExecutable(options.b));
  OPTRAIL_ASSIGN_OR_RETURN(const auto folder, TemporaryFolder::Create("ab"));
  Sides sides;
  OPTRAIL_ASSIGN_OR_RETURN(sides.identical,
                           HoldSameBytes(options.a, options.b));
  const auto side = [&](const std::string& path) {
    BenchmarkProgram program;
    program.path = path;
    program.args = options.build.args;
    program.working_directory = options.common.workspace;
    program.deadline = options.build.deadline;
    MeasuredSide one;
    one.name = path;
    one.run = [program, &folder, &interruptible] {
      return RunBenchmarkProcess(program, folder->path(), interruptible);
    };
    return one;
  };
  sides.a = side(options.a);
  sides.b = side(options.b);
  if (options.code_difference != nullptr) {
    sides.code_difference = [&options] {
      return options.code_difference(options.a, options.b, "");
    };
  }
  return Cleanly(CompareSides(options, sides, out));
}

absl::StatusOr<int> RunCompareCommits(const AbCommand& options,
                                      std::ostream& out) {
  Interruptible interruptible;
  OPTRAIL_ASSIGN_OR_RETURN(
      const auto builder,
      CommitBuilder::Create(BuildOptionsOf(options), interruptible));
  // Both names first: a typing error in B should not cost a build of A.
  OPTRAIL_ASSIGN_OR_RETURN(const std::string a,
                           builder->trees().Resolve(options.a));
  OPTRAIL_ASSIGN_OR_RETURN(const std::string b,
                           builder->trees().Resolve(options.b));
  return Cleanly(CompareBuilt(options, a, options.a, b, *builder, out));
}

absl::StatusOr<int> RunGateCommits(AbCommand options, std::ostream& out) {
  Interruptible interruptible;
  if (!options.policy.has_value()) options.policy = "";
  OPTRAIL_ASSIGN_OR_RETURN(
      const auto builder,
      CommitBuilder::Create(BuildOptionsOf(options), interruptible));
  OPTRAIL_ASSIGN_OR_RETURN(const std::string head,
                           builder->trees().Resolve(options.b));
  // What is built is the commit.
  const auto facts = FindGitFacts(options.common.workspace);
  if (options.b == "HEAD" && facts.ok()) {
    std::string uncommitted = UncommittedText(*facts);
    if (!uncommitted.empty()) options.notes.push_back(std::move(uncommitted));
  }
  std::pair<std::string, std::string> base;
  if (options.a.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(base, BaseOf(options, head));
  } else {
    OPTRAIL_ASSIGN_OR_RETURN(const std::string id,
                             builder->trees().Resolve(options.a));
    base = {options.a, id};
  }
  std::cerr << "gating " << EscapeForTerminal(options.b) << " ("
            << head.substr(0, 12) << ") against "
            << EscapeForTerminal(base.first) << " ("
            << base.second.substr(0, 12) << ")\n";
  return Cleanly(
      CompareBuilt(options, base.second, base.first, head, *builder, out));
}

}  // namespace optrail::tracker
