#ifndef OPTRAIL_TRACKER_CHECKOUT_COMMIT_BUILDER_H_
#define OPTRAIL_TRACKER_CHECKOUT_COMMIT_BUILDER_H_

// CommitBuilder builds what is to be measured at several commits, beside the
// working tree and without touching it, and runs it.
//
//   BuildOptions options;
//   options.build_command = "cmake -B build && cmake --build build";
//   options.run_command = "build/sort_bench --benchmark_out={out}";
//   OPTRAIL_ASSIGN_OR_RETURN(auto builder,
//                            CommitBuilder::Create(options, interruptible));
//   OPTRAIL_ASSIGN_OR_RETURN(std::string id, builder->trees().Resolve("v1.2"));
//   OPTRAIL_ASSIGN_OR_RETURN(Built built, builder->Build(id, Slot::kBase));
//   OPTRAIL_ASSIGN_OR_RETURN(ProcessResult result, builder->Run(built));
//
// There are two kinds. A Bazel target: all commits are built at one place, and
// the binary is kept, so equal code gives equal bytes; only the binary itself
// is kept, a target that needs run files won't find them. Two commands, of any
// build system: run by sh in the commit's tree, one tree for each slot.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tracker/checkout/interruptible.h"
#include "tracker/checkout/process_result.h"
#include "tracker/checkout/worktree.h"

namespace optrail::tracker {

struct BuildOptions {
  WorktreeOptions trees;
  // Either the label of one Bazel target that takes Google Benchmark's flags,
  // "//path:name", and arguments for it ...
  std::string target;
  std::vector<std::string> args;
  // ... or commands. What is run prints or writes results that `optrail
  // import` reads: {out} stands for a file to write, {out_dir} for a folder in
  // which every file is read (below a folder in it, names begin with that
  // folder's); with neither its standard output is. {filter} stands for a
  // regular expression of the benchmarks to measure. There may be nothing to
  // build.
  std::string build_command;
  std::string run_command;

  absl::Duration build_deadline = absl::Hours(1);
  absl::Duration deadline = absl::Minutes(10);  // of one run
  bool quiet = false;
};

// The flags that ask for the same: "--build='make' --run='./bench'".
std::string FlagsOf(const BuildOptions& options);

// Which of the sides of a comparison.
enum class Slot { kBase, kCandidate, kProbe };

struct Built {
  std::string commit;
  std::string path;  // of the binary, or of the tree
};

class CommitBuilder {
 public:
  // InvalidArgument for a target that is no label of one target, and for
  // neither or both of target and command; errors of Worktrees.
  static absl::StatusOr<std::unique_ptr<CommitBuilder>> Create(
      const BuildOptions& options, Interruptible& interruptible);
  CommitBuilder(const CommitBuilder&) = delete;
  CommitBuilder& operator=(const CommitBuilder&) = delete;
  virtual ~CommitBuilder() = default;

  // What is built stays until another commit is built in its slot. A commit
  // that is there already is not built again.
  //   NotFound            the target is not there at this commit
  //   FailedPrecondition  it does not build: with the end of the log
  //   Cancelled           interrupted
  virtual absl::StatusOr<Built> Build(const std::string& commit, Slot slot) = 0;

  // From now on Run() need only measure the benchmarks that match: {filter} of
  // --run. A target measures all the same.
  void Narrow(std::string filter) { filter_ = std::move(filter); }

  // One fresh process. One that fails is a result.
  virtual absl::StatusOr<ProcessResult> Run(const Built& built) = 0;

  // Whether both are equal byte for byte, as far as that is known: then there
  // is nothing to measure.
  virtual absl::StatusOr<bool> AreIdentical(const Built& a, const Built& b) = 0;

  const Worktrees& trees() const { return *trees_; }
  // Builds that were run.
  int builds() const { return builds_; }

 protected:
  CommitBuilder(BuildOptions options, std::unique_ptr<Worktrees> trees,
                Interruptible& interruptible);

  // Runs `argv` in `folder` as the build of `what` at `commit`, and says so.
  // Only Cancelled and what keeps a process from starting are errors.
  absl::StatusOr<Interruptible::End> RunBuild(
      const std::vector<std::string>& argv, const std::string& folder,
      const std::string& what, const std::string& commit);

  const BuildOptions options_;
  const std::unique_ptr<Worktrees> trees_;
  Interruptible& interruptible_;
  std::string filter_ = ".";
  int builds_ = 0;
};

// The two kinds, for CommitBuilder::Create.
absl::StatusOr<std::unique_ptr<CommitBuilder>> NewTargetBuilder(
    const BuildOptions& options, Interruptible& interruptible);
absl::StatusOr<std::unique_ptr<CommitBuilder>> NewCommandBuilder(
    const BuildOptions& options, Interruptible& interruptible);

// Returns whether two files hold the same bytes.
absl::StatusOr<bool> HoldSameBytes(const std::string& path_a,
                                   const std::string& path_b);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_CHECKOUT_COMMIT_BUILDER_H_
